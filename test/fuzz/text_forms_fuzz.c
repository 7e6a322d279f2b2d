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

#include "text_forms.h"

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

static const char *const shortcode_order = UPPER LOWER DIGITS "-_";

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
	ShortcodeStatus status = decode_shortcode(text, len, &id, &position);
	wide		model = 0;

	for (size_t i = 0; i < len; i++)
	{
		int			digit = index_in(shortcode_order, text[i]);

		if (digit < 0)
		{
			CHECK(status == SHORTCODE_NOT_A_DIGIT && position == i);
			return;
		}
		if (i == 0 && digit == 0 && len > 1)
		{
			CHECK(status == SHORTCODE_LEADING_ZERO && position == 0);
			return;
		}
		model = model * 64 + digit;
		if (model > PG_INT64_MAX)
		{
			CHECK(status == SHORTCODE_TOO_GREAT && position == i);
			return;
		}
	}
	if (len == 0)
	{
		CHECK(status == SHORTCODE_EMPTY && position == 0);
		return;
	}
	CHECK(status == SHORTCODE_VALID && id == model);

	/* a text that is read is the one that is written */
	{
		char		again[SHORTCODE_MAX_LEN];

		CHECK((size_t) encode_shortcode(id, again) == len);
		CHECK(memcmp(again, text, len) == 0);
	}
}

/* The shortcode of an ID is its digits, and is read back. */
static void
check_id(int64 id)
{
	char		shortcode[SHORTCODE_MAX_LEN];
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
	CHECK(decode_shortcode(shortcode, len, &back, &position) == SHORTCODE_VALID);
	CHECK(back == id);
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	int64		id = 0;
	char	   *input = malloc(size + 1);

	if (size > 0)
		memcpy(&id, data, Min(size, sizeof(id)));
	check_id(id & PG_INT64_MAX);

	/*
	 * the data as a text, and then a text with few characters that are not
	 * digits
	 */
	check_shortcode_text((const char *) data, size);
	for (size_t i = 0; i < size; i++)
		input[i] = (UPPER LOWER DIGITS "-_ ")[data[i] % 65];
	check_shortcode_text(input, size);

	free(input);
	return 0;
}
