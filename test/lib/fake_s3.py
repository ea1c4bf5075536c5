#!/usr/bin/env python3
"""An S3 store in memory, for tests: what a good one does, and on demand what a bad one does. Also STS's
AssumeRoleWithWebIdentity and the instance metadata service, which hand out keys that it then accepts.

fake_s3.py [--page N] [--conditions yes|ignored|unknown|racy] [--access KEY --secret KEY] [--ranges no] [--tls CERT KEY]

Prints "port N" and then obeys lines on standard input, answering each with one line; ends when it is closed.
  bucket NAME            creates it (bucket "lake" is there)
  rules [RULE, ...]      JSON: disturbs requests; replaces the rules of before
  keys {ACCESS: {"secret": S, "token": T or null, "expires": UNIX or null}, ...}   replaces the keys that are accepted
  skew SECONDS           the store's clock runs so much ahead
  log                    JSON list of [method, path with query, status] of the requests since the last `log`
  objects                JSON object: key -> size, of bucket lake
  uploads                number of multipart uploads that are open
RULE: {"method": "PUT", "part": "text in the path with query", "header": "name of a header it must have", "skip": N, "count": N (0: all),
       "do": "answer" (status, code, retry_after) | "after" (the same, but carried out) | "reset" | "reset_after" (no answer, not or
       carried out) | "hang" | "hang_after" | "slow" (ms) | "truncate" (bytes of the body that are kept; the length says so) | "garble" |
       "late" (no answer; carried out ms later)}
Only the standard library. Not a test of its own."""
import argparse
import hmac
import http.server
import json
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse
import xml.sax.saxutils
from email.utils import formatdate
from hashlib import md5, sha256

XMLNS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


def escape(text):
    return xml.sax.saxutils.escape(text, {'"': "&quot;"})


class Refused(Exception):
    def __init__(self, status, code, message="", headers=None):
        super().__init__(code)
        self.status, self.code, self.message, self.headers = status, code, message, headers or {}


class Object:
    def __init__(self, body, meta=None, etag=None):
        self.body, self.meta, self.mtime = body, meta or {}, time.time()
        self.etag = etag or '"' + md5(body).hexdigest() + '"'


class Upload:
    def __init__(self, key, meta):
        self.key, self.meta, self.parts = key, meta, {}


class Store:
    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.buckets = {"lake": {}}
        self.uploads, self.upload_count, self.issued = {}, 0, 0
        self.rules, self.log, self.skew = [], [], 0
        self.keys = {options.access: {"secret": options.secret, "token": None, "expires": None}} if options.access else {}
        self.stop = threading.Event()

    # ---- rules

    def rule_for(self, method, path, headers):
        with self.lock:
            for rule in self.rules:
                if rule.get("method", method) != method or rule.get("part", "") not in path:
                    continue
                if rule.get("header") and rule["header"] not in headers:
                    continue
                rule["seen"] = rule.get("seen", 0) + 1
                if rule["seen"] <= rule.get("skip", 0):
                    continue
                if rule.get("count", 0) and rule["seen"] > rule.get("skip", 0) + rule["count"]:
                    continue
                return rule
        return None

    # ---- who asks

    def check_signature(self, method, raw_path, headers, body):
        if not self.keys:
            return
        given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]+)",
                             headers.get("authorization", ""))
        if not given:
            raise Refused(403, "AccessDenied", "no signature")
        access, day, region, names, signature = given.groups()
        key = self.keys.get(access)
        if key is None:
            raise Refused(403, "InvalidAccessKeyId", "The access key does not exist.")
        if key.get("token") and headers.get("x-amz-security-token") != key["token"]:
            raise Refused(403, "InvalidToken", "The token is malformed.")
        if key.get("expires") and key["expires"] < time.time():
            raise Refused(400, "ExpiredToken", "The provided token has expired.")
        stamp = headers.get("x-amz-date", "")
        asked = time.mktime(time.strptime(stamp, "%Y%m%dT%H%M%SZ")) - time.timezone
        if abs(asked - time.time() - self.skew) > 900:
            raise Refused(403, "RequestTimeTooSkewed", "The difference is too large.")
        for name in headers:
            if (name.startswith("x-amz-") or name in ("host", "if-none-match", "if-match")) and name not in names.split(";"):
                raise Refused(403, "AccessDenied", f"header {name} isn't signed")
        path, _, query = raw_path.partition("?")
        pairs = sorted(p if "=" in p else p + "=" for p in query.split("&") if p)
        payload = headers.get("x-amz-content-sha256", "")
        if payload != "UNSIGNED-PAYLOAD" and payload != sha256(body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch")
        canonical = "\n".join([method, path, "&".join(pairs),
                               *(f"{n}:{' '.join(headers.get(n, '').split())}" for n in names.split(";")), "", names, payload])
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, f"{day}/{region}/s3/aws4_request", sha256(canonical.encode()).hexdigest()])
        k = ("AWS4" + key["secret"]).encode()
        for part in (day, region, "s3", "aws4_request"):
            k = hmac.new(k, part.encode(), sha256).digest()
        if hmac.new(k, text.encode(), sha256).hexdigest() != signature:
            raise Refused(403, "SignatureDoesNotMatch", "The signature does not match.")

    def issue(self, seconds):
        with self.lock:
            self.issued += 1
            name = f"ASIA{self.issued}"
            key = {"secret": f"secret{self.issued}", "token": f"token/{self.issued}+x==", "expires": time.time() + seconds}
            self.keys[name] = key
            return name, key

    # ---- what it does: (status, headers, body)

    def split(self, headers, raw_path):
        path, _, query = raw_path.partition("?")
        path = urllib.parse.unquote(path)
        host = headers.get("host", "").split(":")[0]
        if host.endswith(".localhost"):
            bucket, key = host[:-len(".localhost")], path[1:]
        else:
            bucket, _, key = path[1:].partition("/")
        return bucket, key, dict(urllib.parse.parse_qsl(query, keep_blank_values=True))

    def handle(self, method, raw_path, headers, body):
        if raw_path.startswith("/latest/"):
            return self.instance(method, raw_path, headers)
        if method == "POST" and body.startswith(b"Action=AssumeRole"):
            return self.assume_role(body)
        self.check_signature(method, raw_path, headers, body)
        bucket, key, query = self.split(headers, raw_path)
        with self.lock:
            if bucket not in self.buckets:
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
        if key == "":
            return self.list(bucket, query)
        if "x-amz-copy-source" in headers:
            return self.copy(bucket, key, headers)
        if "uploads" in query or "uploadId" in query:
            return self.upload(method, bucket, key, query, headers, body)
        if method == "PUT":
            return self.put(bucket, key, headers, Object(body, self.meta(headers)))
        if method == "DELETE":
            with self.lock:
                there = self.buckets[bucket].get(key)
                if "if-match" in headers and self.options.conditions == "unknown":
                    raise Refused(501, "NotImplemented")
                if there is not None and self.options.conditions == "yes" and headers.get("if-match", there.etag) != there.etag:
                    raise Refused(412, "PreconditionFailed")
                self.buckets[bucket].pop(key, None)
            return 204, {}, b""
        return self.get(bucket, key, headers)

    @staticmethod
    def meta(headers):
        return {n: v for n, v in headers.items() if n.startswith("x-amz-meta-")}

    def put(self, bucket, key, headers, made):
        conditional = headers.get("if-none-match") == "*"
        how = self.options.conditions
        if conditional and how == "unknown":
            raise Refused(501, "NotImplemented", "A header you provided implies functionality that is not implemented")
        if conditional and how == "racy":
            with self.lock:
                there = key in self.buckets[bucket]
            time.sleep(0.05)
            if there:
                raise Refused(412, "PreconditionFailed")
            conditional = False
        with self.lock:
            if conditional and how == "yes" and key in self.buckets[bucket]:
                raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
            self.buckets[bucket][key] = made
        return 200, {"ETag": made.etag}, b""

    def get(self, bucket, key, headers):
        with self.lock:
            found = self.buckets[bucket].get(key)
        if found is None:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        if headers.get("if-match") not in (None, found.etag):
            raise Refused(412, "PreconditionFailed")
        about = {"ETag": found.etag, "Last-Modified": formatdate(found.mtime, usegmt=True), **found.meta}
        size = len(found.body)
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", headers.get("range", ""))
        if not asked or self.options.ranges == "no":
            return 200, about, found.body
        first, last = asked.groups()
        if first == "":
            first, last = max(0, size - int(last)), size - 1
        else:
            first, last = int(first), min(int(last or size), size - 1)
        if first >= size:
            raise Refused(416, "InvalidRange", headers={"Content-Range": f"bytes */{size}"})
        return 206, {**about, "Content-Range": f"bytes {first}-{last}/{size}"}, found.body[first:last + 1]

    def copy(self, bucket, key, headers):
        source = urllib.parse.unquote(headers["x-amz-copy-source"]).lstrip("/")
        from_bucket, _, from_key = source.partition("/")
        with self.lock:
            found = self.buckets.get(from_bucket, {}).get(from_key)
            if found is None:
                raise Refused(404, "NoSuchKey", "The specified key does not exist.")
            self.buckets[bucket][key] = made = Object(found.body, found.meta, found.etag)
        return 200, {}, f'<CopyObjectResult {XMLNS}><LastModified>2026-11-29T00:00:00.000Z</LastModified><ETag>{escape(made.etag)}</ETag></CopyObjectResult>'.encode()

    def upload(self, method, bucket, key, query, headers, body):
        with self.lock:
            if "uploads" in query:
                self.upload_count += 1
                name = f"upload {self.upload_count}/+"
                self.uploads[name] = Upload(key, self.meta(headers))
                return 200, {}, f'<InitiateMultipartUploadResult {XMLNS}><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{escape(name)}</UploadId></InitiateMultipartUploadResult>'.encode()
            upload = self.uploads.get(query["uploadId"])
            if upload is None or upload.key != key:
                raise Refused(404, "NoSuchUpload", "The specified multipart upload does not exist.")
            if method == "DELETE":
                del self.uploads[query["uploadId"]]
                return 204, {}, b""
            if method == "PUT":
                upload.parts[int(query["partNumber"])] = part = Object(body)
                return 200, {"ETag": part.etag}, b""
        parts = [(int(n), e.replace("&quot;", '"')) for n, e in re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>([^<]+)</ETag>", body.decode())]
        if [n for n, _ in parts] != sorted(upload.parts) or any(upload.parts[n].etag != e for n, e in parts):
            raise Refused(400, "InvalidPart")
        if any(len(upload.parts[n].body) < 5 << 20 for n, _ in parts[:-1]):
            raise Refused(400, "EntityTooSmall")
        made = Object(b"".join(upload.parts[n].body for n, _ in parts), upload.meta)
        self.put(bucket, key, headers, made)
        with self.lock:
            del self.uploads[query["uploadId"]]
        return 200, {}, f'<CompleteMultipartUploadResult {XMLNS}><Key>{escape(key)}</Key><ETag>{escape(made.etag)}</ETag></CompleteMultipartUploadResult>'.encode()

    def list(self, bucket, query):
        prefix, delimiter, after = query.get("prefix", ""), query.get("delimiter", ""), query.get("continuation-token", "")
        with self.lock:
            keys = sorted((k for k in self.buckets[bucket] if k.startswith(prefix)), key=lambda k: k.encode())
            objects = {k: self.buckets[bucket][k] for k in keys}
        entries = []
        for key in keys:
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            entry = (key[:cut + 1], True) if cut >= 0 else (key, False)
            if not entries or entries[-1] != entry:
                entries.append(entry)
        entries = [e for e in entries if e[0].encode() > urllib.parse.unquote(after).encode()]
        page = entries[:self.options.page]
        out = [f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult {XMLNS}><Name>{bucket}</Name><EncodingType>url</EncodingType>']
        out.append(f"<Prefix>{urllib.parse.quote_plus(prefix, safe='/')}</Prefix><KeyCount>{len(page)}</KeyCount>")
        more = len(entries) > len(page)
        out.append(f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>")
        if more:
            out.append(f"<NextContinuationToken>{escape(urllib.parse.quote(page[-1][0]))}</NextContinuationToken>")
        for key, folder in page:
            name = urllib.parse.quote_plus(key, safe="/")
            if folder:
                out.append(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>")
            else:
                at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(objects[key].mtime))
                out.append(f"<Contents><Key>{name}</Key><LastModified>{at}</LastModified><ETag>{escape(objects[key].etag)}</ETag><Size>{len(objects[key].body)}</Size><StorageClass>STANDARD</StorageClass></Contents>")
        out.append("</ListBucketResult>")
        return 200, {"Content-Type": "application/xml"}, "".join(out).encode()

    # ---- the services that hand out keys

    def assume_role(self, body):
        asked = dict(urllib.parse.parse_qsl(body.decode()))
        if asked.get("WebIdentityToken") != "the-web-token" or asked.get("RoleArn") != "arn:aws:iam::1:role/r":
            return 400, {}, b'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code><Message>bad token</Message></Error><RequestId>1</RequestId></ErrorResponse>'
        name, key = self.issue(self.options.lifetime)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(key["expires"]))
        return 200, {}, (f'<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Audience>a</Audience>'
                         f'<Credentials><SessionToken>{key["token"]}</SessionToken><SecretAccessKey>{key["secret"]}</SecretAccessKey><Expiration>{at}</Expiration><AccessKeyId>{name}</AccessKeyId></Credentials>'
                         f'</AssumeRoleWithWebIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></AssumeRoleWithWebIdentityResponse>').encode()

    def instance(self, method, path, headers):
        if method == "PUT" and path == "/latest/api/token" and "x-aws-ec2-metadata-token-ttl-seconds" in headers:
            return 200, {}, b"instance-token"
        if headers.get("x-aws-ec2-metadata-token") != "instance-token":
            return 401, {}, b""
        base = "/latest/meta-data/iam/security-credentials/"
        if path == base:
            return 200, {}, b"the-role"
        if path == base + "the-role":
            name, key = self.issue(self.options.lifetime)
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(key["expires"]))
            return 200, {}, json.dumps({"Code": "Success", "AccessKeyId": name, "SecretAccessKey": key["secret"], "Token": key["token"], "Expiration": at}).encode()
        return 404, {}, b""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def any(self):
        store = self.store
        headers = {n.lower(): v.strip() for n, v in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        rule = store.rule_for(self.command, self.path, headers) or {}
        do = rule.get("do", "")
        if do in ("hang", "reset", "late"):
            if do == "hang":
                store.stop.wait(rule.get("ms", 3600000) / 1000)
            if do == "late":
                threading.Timer(rule["ms"] / 1000, self.work, (headers, body)).start()
            self.note(0)
            return self.drop()
        if do == "slow":
            store.stop.wait(rule["ms"] / 1000)
        if do == "answer":
            answer = self.refusal(rule)
        else:
            answer = self.work(headers, body)
            if do == "after":
                answer = self.refusal(rule)
        if do in ("hang_after", "reset_after"):
            if do == "hang_after":
                store.stop.wait(rule.get("ms", 3600000) / 1000)
            self.note(0)
            return self.drop()
        if do == "garble":
            answer = (answer[0], answer[1], answer[2][:int(rule.get("keep", len(answer[2]) // 2))])
        self.note(answer[0])
        return self.send(answer, rule.get("keep") if do == "truncate" else None)

    def work(self, headers, body):
        try:
            return self.store.handle(self.command, self.path, headers, body)
        except Refused as e:
            return self.refusal({"status": e.status, "code": e.code, "message": e.message, "headers": e.headers})

    def refusal(self, rule):
        code = rule.get("code", {403: "AccessDenied", 404: "NoSuchKey", 503: "SlowDown", 500: "InternalError"}.get(rule["status"], ""))
        headers = dict(rule.get("headers", {}))
        if "retry_after" in rule:
            headers["Retry-After"] = str(rule["retry_after"])
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{escape(rule.get("message", "so it was asked"))}</Message><RequestId>1</RequestId></Error>' if code else ""
        return rule["status"], headers, body.encode()

    def send(self, answer, keep):
        status, headers, body = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if keep is not None:
            self.wfile.write(body[:keep])
            return self.drop()
        if self.command != "HEAD":
            self.wfile.write(body)

    def date_time_string(self, timestamp=None):
        return formatdate((timestamp or time.time()) + self.store.skew, usegmt=True)

    def note(self, status):
        with self.store.lock:
            self.store.log.append([self.command, self.path, status])

    def drop(self):
        self.close_connection = True
        self.wfile.flush()
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = any


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # a client that went away


def obey(store, line):
    word, _, rest = line.strip().partition(" ")
    with store.lock:
        if word == "bucket":
            store.buckets[rest] = {}
        elif word == "rules":
            store.rules = json.loads(rest)
        elif word == "keys":
            store.keys = json.loads(rest)
        elif word == "skew":
            store.skew = float(rest)
        elif word == "log":
            out, store.log = json.dumps(store.log), []
            return out
        elif word == "objects":
            return json.dumps({k: len(o.body) for k, o in sorted(store.buckets["lake"].items())})
        elif word == "uploads":
            return str(len(store.uploads))
        else:
            return "what?"
    return "ok"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--page", type=int, default=1000)
    parser.add_argument("--conditions", default="yes")
    parser.add_argument("--ranges", default="yes")
    parser.add_argument("--access", default="")
    parser.add_argument("--secret", default="")
    parser.add_argument("--lifetime", type=int, default=3600)
    parser.add_argument("--tls", nargs=2)
    options = parser.parse_args()
    Handler.store = store = Store(options)
    server = Server(("127.0.0.1", options.port), Handler)
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*options.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    print(f"port {server.server_address[1]}", flush=True)
    for line in sys.stdin:
        print(obey(store, line), flush=True)
    store.stop.set()


if __name__ == "__main__":
    main()
