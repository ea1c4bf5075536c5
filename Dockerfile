# Tarn in a container: the same scripts/setup and make install as on any Debian 12 machine.
FROM debian:bookworm AS build
WORKDIR /src
COPY scripts/setup scripts/setup
ENV TARN_CACHE=/var/cache/tarn
RUN scripts/setup
COPY . .
RUN make -j"$(nproc)" && make install DESTDIR=/out PREFIX=/usr

FROM debian:bookworm-slim
# What the programs link at run time; Arrow's two libraries come with make install.
RUN apt-get -qq update \
    && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install \
       libgrpc29 libprotobuf-c1 librocksdb7.8 libevent-core-2.1-7 libevent-openssl-2.1-7 libevent-pthreads-2.1-7 \
       libzstd1 zlib1g libsnappy1v5 libssl3 libjansson4 libinih1 libxxhash0 libcurl4 libstdc++6 ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /var/lib/tarn --create-home --shell /usr/sbin/nologin tarn
COPY --from=build /out/ /
USER tarn
WORKDIR /var/lib/tarn
VOLUME /var/lib/tarn
EXPOSE 7420 7421
STOPSIGNAL SIGTERM
# Inside a container loopback reaches nobody: listen on all addresses, with tokens. Mount the token
# file, or say what you mean with your own --set or /etc/tarn/tarnd.conf.
ENTRYPOINT ["/usr/bin/tarnd", "-c", "/etc/tarn/tarnd.conf", "--set", "server.data_dir=/var/lib/tarn"]
CMD ["--set", "server.grpc_listen=0.0.0.0:7420", "--set", "server.http_listen=0.0.0.0:7421", \
     "--set", "auth.mode=token", "--set", "auth.token_file=/run/secrets/tarn-tokens"]
