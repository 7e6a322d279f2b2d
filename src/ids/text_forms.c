/* The SQL-callable functions that write and read IDs as text. */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "compat.h"
#include "ids/text_forms.h"

PG_FUNCTION_INFO_V1(instaid_to_shortcode);
PG_FUNCTION_INFO_V1(instaid_from_shortcode);
PG_FUNCTION_INFO_V1(instaid_to_base32);
PG_FUNCTION_INFO_V1(instaid_from_base32);

/* the most bytes of a text that an error shows */
#define MAX_SHOWN	64

/* How to read a text form, and what errors say about it */
typedef struct TextForm
{
	TextStatus	(*decode) (const char *input, size_t len, int64 *id, size_t *position);
	const char *name;
	const char *digits;			/* sentences about its digits */
	const char *last;			/* the form of the last ID */
} TextForm;

static const TextForm shortcode_form = {
	decode_shortcode,
	"shortcode",
	"A shortcode has 1 to 11 of the digits A-Z, a-z, 0-9, - and _.",
	LAST_SHORTCODE
};

static const TextForm base32_form = {
	decode_base32,
	"base32",
	"Base32 has 13 of the digits 0-9 and A-Z without U. Hyphens are ignored.",
	LAST_BASE32
};

static void
check_not_negative(int64 id)
{
	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("ID %lld has no text form", (long long) id),
				 errdetail("Only IDs from 0 to %lld have one.",
						   (long long) PG_INT64_MAX)));
}

/* How many characters are not hyphens */
static int
count_digits(const char *text, size_t len)
{
	int			digits = pg_mbstrlen_with_len(text, (int) len);

	for (size_t i = 0; i < len; i++)
		digits -= text[i] == '-';

	return digits;
}

/*
 * Report what is wrong with a text.  Only digits and hyphens are before the
 * position, each of one byte, so it counts characters, too.
 */
static void
report_invalid(const TextForm *form, text *input, TextStatus status,
			   size_t position)
{
	static const char *const messages[] = {
		[TEXT_NOT_A_DIGIT] = "invalid character \"%s\" at position %d of %s \"%s\"",
		[TEXT_LEADING_ZERO] = "leading zero \"%s\" at position %d of %s \"%s\"",
		[TEXT_TOO_GREAT] = "digit \"%s\" at position %d of %s \"%s\" makes the ID too large",
		[TEXT_TOO_LONG] = "digit \"%s\" at position %d of %s \"%s\" is one too many"
	};
	const char *start = VARDATA_ANY(input);
	size_t		len = VARSIZE_ANY_EXHDR(input);
	char	   *whole = pnstrdup(start, pg_mbcliplen(start, (int) len, MAX_SHOWN));
	char	   *character;
	int64		id;

	if (status == TEXT_TOO_SHORT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 len == 0 ? errmsg("%s is empty", form->name) :
				 errmsg("%s \"%s\" has %d of %d digits", form->name, whole,
						count_digits(start, len), BASE32_LEN),
				 errdetail("%s", form->digits),
				 len > 0 && decode_shortcode(start, len, &id, &position) == TEXT_VALID ?
				 errhint("It can be a shortcode, which from_shortcode() reads.") : 0));

	character = pnstrdup(start + position,
						 Min(len - position,
							 (size_t) pg_encoding_mblen(GetDatabaseEncoding(),
														start + position)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg(messages[status], character, (int) position + 1, form->name, whole),
			 status == TEXT_LEADING_ZERO ?
			 errdetail("The %s of an ID has no leading zeros.", form->name) :
			 status == TEXT_TOO_GREAT ?
			 errdetail("The largest ID is %lld, written \"%s\".",
					   (long long) PG_INT64_MAX, form->last) :
			 errdetail("%s", form->digits),
			 status == TEXT_LEADING_ZERO ?
			 errhint("Remove the leading \"%s\".", character) : 0));
}

static Datum
read_text(const TextForm *form, text *input)
{
	int64		id = 0;
	size_t		position;
	TextStatus	status;

	status = form->decode(VARDATA_ANY(input), VARSIZE_ANY_EXHDR(input),
						  &id, &position);
	if (status != TEXT_VALID)
		report_invalid(form, input, status, position);
	return Int64GetDatum(id);
}

Datum
instaid_to_shortcode(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	char		digits[SHORTCODE_MAX_LEN];

	check_not_negative(id);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(digits,
											  encode_shortcode(id, digits)));
}

Datum
instaid_from_shortcode(PG_FUNCTION_ARGS)
{
	return read_text(&shortcode_form, PG_GETARG_TEXT_PP(0));
}

Datum
instaid_to_base32(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	char		digits[BASE32_LEN];

	check_not_negative(id);
	encode_base32(id, digits);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(digits, BASE32_LEN));
}

Datum
instaid_from_base32(PG_FUNCTION_ARGS)
{
	return read_text(&base32_form, PG_GETARG_TEXT_PP(0));
}
