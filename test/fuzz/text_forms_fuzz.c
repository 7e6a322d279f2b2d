/*-------------------------------------------------------------------------
 *
 * text_forms_fuzz.c
 *	  The functions of text_forms.h against a model of them, for libFuzzer.
 *
 * The model reads a text as a number of 128 bits, digit by digit, with the
 * digits looked up in a table of all bytes, and stops at the first that cannot
 * be.  It writes by division.
 *
 *-------------------------------------------------------------------------
 */
#include "c.h"

#include "ids/text_forms.h"

typedef __int128 wide;

/* not fprintf(), which c.h replaces with one of PostgreSQL's library */
#define CHECK(condition) \
	do { \
		if (!(condition)) \
		{ \
			fputs("text_forms_fuzz.c:" CppAsString2(__LINE__) ": " #condition "\n", stderr); \
			abort(); \
		} \
	} while (0)

#define DIGITS		"0123456789"
#define UPPER		"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER		"abcdefghijklmnopqrstuvwxyz"

/* 0-9 A-Z a-z as Crockford reads them; * is no digit */
static const char *const crockford_digits = DIGITS UPPER LOWER;
static const char *const crockford_values =
DIGITS "ABCDEFGH1JK1MN0PQRST*VWXYZ" "ABCDEFGH1JK1MN0PQRST*VWXYZ";

static const char *const shortcode_order = UPPER LOWER DIGITS "-_";
static const char *const base32_order = DIGITS "ABCDEFGHJKMNPQRSTVWXYZ";

int			LLVMFuzzerTestOneInput(const uint8 *data, size_t size);

static int
index_in(const char *order, char c)
{
	for (int i = 0; order[i] != '\0'; i++)
	{
		if (order[i] == c)
			return i;
	}
	return -1;
}

static void
check_shortcode_text(const char *text, size_t len)
{
	int64		id = -1;
	size_t		position;
	TextStatus	status = decode_shortcode(text, len, &id, &position);
	wide		model = 0;

	for (size_t i = 0; i < len; i++)
	{
		int			digit = index_in(shortcode_order, text[i]);

		if (digit < 0)
		{
			CHECK(status == TEXT_NOT_A_DIGIT && position == i);
			return;
		}
		if (i == 0 && digit == 0 && len > 1)
		{
			CHECK(status == TEXT_LEADING_ZERO && position == 0);
			return;
		}
		model = model * 64 + digit;
		if (model > PG_INT64_MAX)
		{
			CHECK(status == TEXT_TOO_GREAT && position == i);
			return;
		}
	}
	if (len == 0)
	{
		CHECK(status == TEXT_TOO_SHORT && position == 0);
		return;
	}
	CHECK(status == TEXT_VALID && id == model);

	/* a text that is read is the one that is written */
	{
		char		again[SHORTCODE_MAX_LEN];

		CHECK((size_t) encode_shortcode(id, again) == len);
		CHECK(memcmp(again, text, len) == 0);
	}
}

static void
check_base32_text(const char *text, size_t len)
{
	int64		id = -1;
	size_t		position;
	TextStatus	status = decode_base32(text, len, &id, &position);
	wide		model = 0;
	int			digits = 0;

	for (size_t i = 0; i < len; i++)
		digits += text[i] != '-';
	if (digits < 13)
	{
		CHECK(status == TEXT_TOO_SHORT);
		return;
	}

	digits = 0;
	for (size_t i = 0; i < len; i++)
	{
		int			at = index_in(crockford_digits, text[i]);

		if (text[i] == '-')
			continue;
		if (at < 0 || crockford_values[at] == '*')
		{
			CHECK(status == TEXT_NOT_A_DIGIT && position == i);
			return;
		}
		if (digits == 13)
		{
			CHECK(status == TEXT_TOO_LONG && position == i);
			return;
		}
		model = model * 32 + index_in(base32_order, crockford_values[at]);
		/* with the first digit it is known */
		if (digits == 0 && model * ((wide) 1 << 60) > PG_INT64_MAX)
		{
			CHECK(status == TEXT_TOO_GREAT && position == i);
			return;
		}
		digits++;
	}
	CHECK(status == TEXT_VALID && id == model);
}

/* Both forms of an ID are its digits, and are read back. */
static void
check_id(int64 id)
{
	char		shortcode[SHORTCODE_MAX_LEN];
	char		base32[BASE32_LEN];
	int			len = encode_shortcode(id, shortcode);
	int64		rest = id;
	int64		back = -1;
	size_t		position;

	CHECK(len >= 1 && len <= 11);
	for (int i = len - 1; i >= 0; i--)
	{
		CHECK(shortcode[i] == shortcode_order[rest % 64]);
		rest /= 64;
	}
	CHECK(rest == 0);
	CHECK(decode_shortcode(shortcode, len, &back, &position) == TEXT_VALID);
	CHECK(back == id);

	encode_base32(id, base32);
	rest = id;
	for (int i = 12; i >= 0; i--)
	{
		CHECK(base32[i] == base32_order[rest % 32]);
		rest /= 32;
	}
	CHECK(rest == 0);
	CHECK(decode_base32(base32, 13, &back, &position) == TEXT_VALID);
	CHECK(back == id);
}

/* Base32 sorts as the IDs do. */
static void
check_order(int64 a, int64 b)
{
	char		text_a[BASE32_LEN];
	char		text_b[BASE32_LEN];

	encode_base32(a, text_a);
	encode_base32(b, text_b);
	CHECK((memcmp(text_a, text_b, BASE32_LEN) < 0) == (a < b));
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	int64		ids[2] = {0};
	char	   *input = malloc(size + 1);

	if (size > 0)
		memcpy(ids, data, Min(size, sizeof(ids)));
	check_id(ids[0] & PG_INT64_MAX);
	check_order(ids[0] & PG_INT64_MAX, ids[1] & PG_INT64_MAX);

	/*
	 * the data as a text, and then a text with few characters that are not
	 * digits
	 */
	check_shortcode_text((const char *) data, size);
	check_base32_text((const char *) data, size);
	for (size_t i = 0; i < size; i++)
		input[i] = (UPPER LOWER DIGITS "-_-")[data[i] % 65];
	check_shortcode_text(input, size);
	check_base32_text(input, size);

	free(input);
	return 0;
}
