/*
 * Promise: S3's and STS's answers are read as the API reference shows them; what isn't well-formed, is cut off,
 * nested too deeply, declares entities or contradicts itself is refused with the place.
 */
#include "store/s3.h"
#include "test.h"

#define S(text) tarn_slice_str(text)

/* "<name", ">name" and "'text'" of all events. */
static struct tarn_status *events_of(struct tarn_test *t, struct tarn_slice text, const char **out)
{
    struct tarn_xml xml;
    enum tarn_xml_event event;
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    tarn_xml_init(&xml, text, t->arena);
    do {
        TARN_TRY(tarn_xml_next(&xml, &event));
        if (event == TARN_XML_START)
            tarn_buf_printf(&buf, "<%.*s ", TARN_SLICE_ARG(xml.name));
        else if (event == TARN_XML_END)
            tarn_buf_printf(&buf, ">%.*s ", TARN_SLICE_ARG(xml.name));
        else if (event == TARN_XML_TEXT)
            tarn_buf_printf(&buf, "'%.*s' ", TARN_SLICE_ARG(xml.value));
    } while (event != TARN_XML_DONE);
    *out = tarn_arena_str(t->arena, tarn_buf_slice(&buf));
    return TARN_OK;
}

static void expect_events(struct tarn_test *t, const char *text, const char *want)
{
    const char *got = NULL;
    expect_ok(events_of(t, S(text), &got));
    expect_str(got, want);
}

static void expect_bad(struct tarn_test *t, const char *text, const char *why)
{
    const char *got = NULL;
    expect_status(events_of(t, S(text), &got), TARN_VALUE_INVALID, why);
}

TARN_TEST(s3_xml, elements_and_text)
{
    expect_events(
        t,
        "<?xml version=\"1.0\"?>\n<a x='>' y=\"/\"><b>1 &lt;&#65;&#x20AC;&amp;&quot; </b>\n <c/><d ></d ></a>\n",
        "<a <b '1 <A\xe2\x82\xac&\" ' >b <c >c <d >d >a ");
    expect_events(t, "\xef\xbb\xbf<n:a xmlns:n='u'><!-- <b> --><![CDATA[<x>&]]></n:a>",
                  "<a '<x>&' >a ");
}

TARN_TEST(s3_xml, refuses_what_is_not_well_formed)
{
    expect_bad(t, "", "too early");
    expect_bad(t, "   ", "too early");
    expect_bad(t, "text", "outside the root");
    expect_bad(t, "<a>", "too early");
    expect_bad(t, "<a", "inside a tag");
    expect_bad(t, "<a><b></a></b>", "without its start");
    expect_bad(t, "</a>", "without its start");
    expect_bad(t, "<a/><b/>", "more than one root");
    expect_bad(t, "<a/>x", "outside the root");
    expect_bad(t, "<a b=\"<a/>", "inside a tag");
    expect_bad(t, "<a <b/></a>", "'<' inside");
    expect_bad(t, "<>", "name is missing");
    expect_bad(t, "<a><!-- </a>", "too early");
    expect_bad(t, "<a>&lt</a>", "entity");
    expect_bad(t, "<a>&unknown;</a>", "entity");
    expect_bad(t, "<a>&#0;</a>", "entity");
    expect_bad(t, "<a>&#xD800;</a>", "entity");
    expect_bad(t, "<a>&#99999999999;</a>", "entity");
    expect_bad(t, "<a>\xff</a>", "UTF-8");
    expect_bad(t, "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "declarations");
}

TARN_TEST(s3_xml, depth_is_bounded)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (int i = 0; i < TARN_S3_XML_DEPTH_MAX + 1; i++)
        tarn_buf_add_str(&text, "<a>");
    expect_bad(t, tarn_buf_cstr(&text), "too deeply");
}

/* ---- answers ---- */

static const char page_text[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n"
    "  <Name>quotes</Name><Prefix>E</Prefix><StartAfter>ExampleGuide.pdf</StartAfter>\n"
    "  <KeyCount>2</KeyCount><MaxKeys>3</MaxKeys><EncodingType>url</EncodingType>\n"
    "  <IsTruncated>true</IsTruncated>\n"
    "  <Contents><Key>a+b/%C3%A9%2B.txt</Key><LastModified>2013-09-17T18:07:53.000Z</LastModified>\n"
    "    <ETag>&quot;599bab3ed2c697f1d26842727561fd94&quot;</ETag><Size>857</Size>\n"
    "    <Owner><ID>x</ID></Owner><StorageClass>REDUCED_REDUNDANCY</StorageClass></Contents>\n"
    "  <CommonPrefixes><Prefix>photos/</Prefix></CommonPrefixes>\n"
    "  <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>\n"
    "</ListBucketResult>";

TARN_TEST(s3_answer, a_page_of_a_list)
{
    struct tarn_s3_page page = {0};
    expect_ok(tarn_s3__decode_page(S(page_text), t->arena, &page));
    expect_int(page.count, 2);
    expect_slice(page.objects[0].key, "a b/\xc3\xa9+.txt");
    expect_int(page.objects[0].size, 857);
    expect_int(page.objects[0].mtime_ms, INT64_C(1379441273000));
    expect_slice(page.objects[1].key, "photos/");
    expect_true(page.objects[1].is_folder);
    expect_true(page.more);
    expect_slice(page.token, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
}

static void expect_no_page(struct tarn_test *t, const char *text, const char *why)
{
    struct tarn_s3_page page = {0};
    expect_status(tarn_s3__decode_page(S(text), t->arena, &page), TARN_VALUE_INVALID, why);
}

TARN_TEST(s3_answer, half_a_page_is_none)
{
    for (size_t size = 0; size < sizeof page_text - 1; size++) {
        struct tarn_s3_page page = {0};
        expect_status(tarn_s3__decode_page(tarn_slice_of(page_text, size), t->arena, &page),
                      TARN_VALUE_INVALID, "");
    }
    expect_no_page(t, "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
                   "doesn't say where");
    expect_no_page(t, "<ListBucketResult><IsTruncated>maybe</IsTruncated></ListBucketResult>",
                   "neither true nor false");
    expect_no_page(t, "<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>",
                   "without a key or a size");
    expect_no_page(t,
                   "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%2</Key>"
                   "<Size>1</Size></Contents></ListBucketResult>",
                   "badly encoded");
    expect_no_page(t, "<Error><Code>SlowDown</Code></Error>", "is no list");
}

TARN_TEST(s3_answer, errors_of_s3_and_sts)
{
    bool found;
    struct tarn_s3_error error;
    expect_ok(tarn_s3__decode_error(S("<Error><Code>NoSuchKey</Code><Message>The resource</Message>"
                                      "<Resource>/b/k</Resource></Error>"),
                                    t->arena, &found, &error));
    expect_true(found);
    expect_slice(error.code, "NoSuchKey");
    expect_slice(error.message, "The resource");
    expect_ok(tarn_s3__decode_error(
        S("<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender"
          "</Type><Code>ExpiredTokenException</Code><Message>m</Message></Error><RequestId>1"
          "</RequestId></ErrorResponse>"),
        t->arena, &found, &error));
    expect_true(found);
    expect_slice(error.code, "ExpiredTokenException");
    expect_ok(tarn_s3__decode_error(S(page_text), t->arena, &found, &error));
    expect_false(found);
    expect_status(tarn_s3__decode_error(S("502 Bad Gateway"), t->arena, &found, &error),
                  TARN_VALUE_INVALID, "");
}

TARN_TEST(s3_answer, one_element)
{
    struct tarn_slice id;
    expect_ok(tarn_s3__decode_one(S("<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>"
                                    "<UploadId>VXB sb2</UploadId></InitiateMultipartUploadResult>"),
                                  t->arena, "InitiateMultipartUpload", "UploadId", &id));
    expect_slice(id, "VXB sb2");
    expect_status(tarn_s3__decode_one(S("<Error><Code>x</Code></Error>"), t->arena, "CopyObject",
                                      "ETag", &id),
                  TARN_VALUE_INVALID, "want 'CopyObjectResult'");
    expect_status(
        tarn_s3__decode_one(S("<CopyObjectResult/>"), t->arena, "CopyObject", "ETag", &id),
        TARN_VALUE_INVALID, "without a 'ETag'");
}

TARN_TEST(s3_answer, keys_of_an_assumed_role)
{
    TARN_OWN(tarn_s3__keys_drop) struct tarn_s3_keys *keys = NULL;
    expect_ok(tarn_s3__decode_role(
        S("<AssumeRoleWithWebIdentityResponse "
          "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult>"
          "<SubjectFromWebIdentityToken>s</SubjectFromWebIdentityToken><Credentials>"
          "<SessionToken>AQoDYXdz/+=</SessionToken><SecretAccessKey>wJalr</SecretAccessKey>"
          "<Expiration>2014-10-24T23:00:23Z</Expiration><AccessKeyId>ASgeIAIOSFODNN7EXAMPLE"
          "</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>"
          "</AssumeRoleWithWebIdentityResponse>"),
        t->arena, &keys));
    expect_str(keys->access_key, "ASgeIAIOSFODNN7EXAMPLE");
    expect_str(keys->secret_key, "wJalr");
    expect_str(keys->session_token, "AQoDYXdz/+=");
    expect_int(keys->expires_ms, INT64_C(1414191623000));
    expect_status(tarn_s3__decode_role(S("<a/>"), t->arena, &keys), TARN_VALUE_INVALID,
                  "no credentials");
}

TARN_TEST(s3_answer, headers)
{
    int64_t a, b, c;
    expect_true(tarn_s3__http_date(S("Fri, 24 May 2013 00:00:00 GMT"), &a));
    expect_int(a, INT64_C(1369353600000));
    expect_false(tarn_s3__http_date(S("2013-05-24"), &a));
    expect_false(tarn_s3__http_date(S(""), &a));
    expect_true(tarn_s3__content_range(S("bytes 3-6/10"), &a, &b, &c));
    expect_true(a == 3 && b == 6 && c == 10);
    expect_true(tarn_s3__content_range(S("bytes */10"), &a, &b, &c));
    expect_true(a == -1 && b == -1 && c == 10);
    static const char *const bad[] = {"",
                                      "bytes 3-6",
                                      "bytes 6-3/10",
                                      "bytes 3-10/10",
                                      "bytes 3-6/x",
                                      "bytes -6/10",
                                      "bytes 3-6/10 ",
                                      "bytes 3-99999999999999999999/10"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_false(tarn_s3__content_range(S(bad[i]), &a, &b, &c));
}

TARN_TEST(s3_answer, a_profile_of_the_credentials_file)
{
    const char *text =
        "# mine\n[default]\naws_access_key_id=AKIA1\naws_secret_access_key = s/1+=\n"
        "region = eu-west-1\n\n[profile lake]\r\naws_access_key_id = AKIA2\r\n"
        "aws_secret_access_key=s2\r\naws_session_token=t2\r\n[half]\naws_access_key_id=x\n";
    TARN_OWN(tarn_s3__keys_drop) struct tarn_s3_keys *keys = NULL;
    expect_ok(tarn_s3__profile_find(S(text), "default", &keys));
    expect_str(keys->access_key, "AKIA1");
    expect_str(keys->secret_key, "s/1+=");
    expect_str(keys->session_token, "");
    tarn_s3__keys_drop(&keys);
    expect_ok(tarn_s3__profile_find(S(text), "lake", &keys));
    expect_str(keys->access_key, "AKIA2");
    expect_str(keys->session_token, "t2");
    tarn_s3__keys_drop(&keys);
    expect_status(tarn_s3__profile_find(S(text), "none", &keys), TARN_VALUE_INVALID,
                  "no profile [none]");
    expect_status(tarn_s3__profile_find(S(text), "half", &keys), TARN_STORE_DENIED,
                  "no access key");
    expect_status(tarn_s3__profile_find(S("[a"), "a", &keys), TARN_VALUE_INVALID, "line 1");
    expect_status(tarn_s3__profile_find(S("[a]\nwhat"), "a", &keys), TARN_VALUE_INVALID, "line 2");
}
