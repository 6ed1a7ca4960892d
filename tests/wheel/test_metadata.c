/* METADATA, WHEEL and RECORD. Judge: the core metadata specification, PEP 427 and files as build back ends write them. */
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "wheel/wheel.h"

static arena *memory;

static int start(void **state)
{
    (void)state;
    memory = arena_new(0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_free(memory);
    return 0;
}

static span file_of(const char *text) { return span_from_str(str_from(text)); }

#define assert_text(expected, got)                                                                           \
    do {                                                                                                     \
        const str got_text = (got);                                                                          \
        assert_string_equal(expected, str_c(memory, got_text));                                              \
    } while (0)

static void headers_are_read_up_to_the_description(void **state)
{
    (void)state;
    struct wheel_metadata m;
    size_t line = 0;
    str why;
    assert_true(metadata_parse(
        memory,
        file_of("Metadata-Version: 2.1\r\nname: xformers\r\nVersion: 0.0.34+3da0fc92.d20260528\r\n"
                "Summary: one\r\n  two\r\nRequires-Python: >=3.9\r\n"
                "Requires-Dist: torch>=2.10\r\nRequires-Dist: numpy (>=1.0.*)\r\n"
                "Provides-Extra: dev\r\nRequires-Dist: pytest ; extra == 'dev'\r\n\r\n"
                "Name: this is the description\r\nand no header\r\n"),
        &m, &line, &why));
    assert_text("xformers", m.name);
    assert_text("0.0.34+3da0fc92.d20260528", version_normal(memory, &m.version));
    assert_text("one\ntwo", m.summary);
    assert_true(m.python_valid);
    assert_int_equal(1, m.python.count);
    assert_int_equal(3, m.count);
    assert_true(m.items[0].valid && !m.items[1].valid && m.items[2].valid);
    assert_int_equal(8, m.items[1].line);
    assert_text("pytest; extra == \"dev\"", requirement_text(memory, &m.items[2].requirement));
    assert_text("dev", m.extras.items[0]);
}

static void broken_metadata_says_where_and_what_is_missing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t line;
        const char *why;
    } CASES[] = {
        {"", 1, "a Name is missing"},
        {"Name: x\n\nVersion: 1\n", 2, "a Version is missing"},
        {"Name: x\nVersion: one\n", 2, "Version: expected a PEP 440 version"},
        {"Name: x\nno header here\n", 2, "expected a header, 'Name: value'"},
        {" Name: x\n", 1, "expected a header, 'Name: value'"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct wheel_metadata m;
        size_t line = 0;
        str why;
        assert_false(metadata_parse(memory, file_of(CASES[i].text), &m, &line, &why));
        assert_text(CASES[i].why, why);
        assert_int_equal(CASES[i].line, line);
    }
}

static void tags_of_the_file_and_of_the_name_are_compared(void **state)
{
    (void)state;
    struct wheel_facts facts;
    struct wheel_name name;
    size_t line = 0;
    str why, odd;
    const span file = file_of("Wheel-Version: 1.0\nGenerator: bdist_wheel (0.37.1)\nRoot-Is-Purelib: true\n"
                              "Tag: py2-none-any\nTag: py3-none-any\nBuild: 1\n");
    assert_true(wheel_facts_parse(memory, file, &facts, &line, &why));
    assert_true(facts.is_pure);
    assert_text("1", facts.build);
    assert_true(wheel_name_parse(memory, S("x-1-py2.py3-none-any.whl"), &name, &why));
    assert_true(wheel_tags_agree(memory, &facts, &name.tags, &odd));
    assert_true(wheel_name_parse(memory, S("x-1-py3-none-any.whl"), &name, &why));
    assert_false(wheel_tags_agree(memory, &facts, &name.tags, &odd));
    assert_text("py2-none-any", odd);
    assert_true(wheel_name_parse(memory, S("x-1-cp312.py2.py3-none-any.whl"), &name, &why));
    assert_false(wheel_tags_agree(memory, &facts, &name.tags, &odd));
    assert_text("cp312-none-any", odd);
    assert_false(wheel_facts_parse(memory, file_of("Wheel-Version: 1.0\n"), &facts, &line, &why));
    assert_text("a Tag is missing", why);
    assert_false(wheel_facts_parse(memory, file_of("Tag: py3-none-any\n"), &facts, &line, &why));
    assert_text("a Wheel-Version is missing", why);
}

static void records_are_csv_with_hashes_and_sizes(void **state)
{
    (void)state;
    struct record record;
    size_t line = 0;
    str why;
    uint8_t digest[32];
    const span file = file_of("x/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\r\n"
                              "\"x/a,\"\"b\"\".py\",sha256=short,12\n\nx-1.dist-info/RECORD,,\n");
    assert_true(record_parse(memory, file, &record, &line, &why));
    assert_int_equal(3, record.count);
    assert_true(record_sha256(&record.items[0], digest)); /* of no bytes */
    assert_text("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", hex(memory, digest, 32));
    assert_text("x/a,\"b\".py", record.items[1].path);
    assert_true(record.items[1].has_size);
    assert_int_equal(12, record.items[1].size);
    assert_false(record_sha256(&record.items[1], digest));
    assert_false(record.items[2].has_size);
    assert_null(record.items[2].algorithm.p);
}

static void a_digest_is_taken_only_when_it_is_one(void **state)
{
    (void)state;
    uint8_t digest[32];
    static const char *const BROKEN[] = {
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",  /* base64, but not its URL-safe form */
        "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=", /* padded */
        "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFV",  /* more than 256 bits */
        "",
    };
    for (size_t i = 0; i < COUNT(BROKEN); i++) {
        const struct record_entry entry = {.algorithm = S("sha256"), .digest = str_from(BROKEN[i])};
        assert_false(record_sha256(&entry, digest));
    }
    const struct record_entry other = {.algorithm = S("md5"),
                                       .digest = S("47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU")};
    assert_false(record_sha256(&other, digest));
}

static void a_broken_record_says_where_and_what_was_expected(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"a,sha256=x,1\nb\"c,,\n", "expected three fields: path,algorithm=digest,size"},
        {"a,,\n\"b,,\n", "expected three fields: path,algorithm=digest,size"},
        {"a,,\n\"b\"c,,\n", "expected three fields: path,algorithm=digest,size"},
        {"a,,\nb,c\n", "expected three fields: path,algorithm=digest,size"},
        {"a,,\nb,c,d,e\n", "expected three fields: path,algorithm=digest,size"},
        {"a,,\n,sha256=x,1\n", "expected a path"},
        {"a,,\nb,sha256,1\n", "expected a hash as algorithm=digest"},
        {"a,,\nb,sha256=x,-1\n", "expected a size in bytes"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct record record;
        size_t line = 0;
        str why;
        assert_false(record_parse(memory, file_of(CASES[i][0]), &record, &line, &why));
        assert_text(CASES[i][1], why);
        assert_int_equal(2, line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_read_up_to_the_description),
        cmocka_unit_test(broken_metadata_says_where_and_what_is_missing),
        cmocka_unit_test(tags_of_the_file_and_of_the_name_are_compared),
        cmocka_unit_test(records_are_csv_with_hashes_and_sizes),
        cmocka_unit_test(a_digest_is_taken_only_when_it_is_one),
        cmocka_unit_test(a_broken_record_says_where_and_what_was_expected),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
