/* The SQL-callable functions that write and read IDs as text. */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "compat.h"
#include "text_forms.h"

PG_FUNCTION_INFO_V1(instaid_to_shortcode);
PG_FUNCTION_INFO_V1(instaid_from_shortcode);

/* the most bytes of a text that an error shows */
#define MAX_SHOWN	64

/*
 * Report what is wrong with a text.  Only digits are before the position, each
 * of one byte, so it counts characters, too.
 */
pg_noreturn static void
report_invalid(text *input, ShortcodeStatus status, size_t position)
{
	static const char digits[] = "A shortcode has 1 to 11 of the digits A-Z, a-z, 0-9, - and _.";
	const char *start = VARDATA_ANY(input);
	size_t		len = VARSIZE_ANY_EXHDR(input);
	char	   *whole;
	char	   *character;

	if (status == SHORTCODE_EMPTY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("shortcode is empty"),
				 errdetail("%s", digits)));

	whole = pnstrdup(start, pg_mbcliplen(start, (int) len, MAX_SHOWN));
	character = pnstrdup(start + position,
						 Min(len - position,
							 (size_t) pg_encoding_mblen(GetDatabaseEncoding(),
														start + position)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 status == SHORTCODE_NOT_A_DIGIT ?
			 errmsg("invalid character \"%s\" at position %d of shortcode \"%s\"",
					character, (int) position + 1, whole) :
			 status == SHORTCODE_LEADING_ZERO ?
			 errmsg("leading zero \"%s\" at position %d of shortcode \"%s\"",
					character, (int) position + 1, whole) :
			 errmsg("digit \"%s\" at position %d of shortcode \"%s\" makes the ID too large",
					character, (int) position + 1, whole),
			 status == SHORTCODE_LEADING_ZERO ?
			 errdetail("The shortcode of an ID has no leading zeros.") :
			 status == SHORTCODE_TOO_GREAT ?
			 errdetail("The largest ID is %lld, written \"%s\".",
					   (long long) PG_INT64_MAX, LAST_SHORTCODE) :
			 errdetail("%s", digits),
			 status == SHORTCODE_LEADING_ZERO ?
			 errhint("Remove the leading \"%s\".", character) : 0));
}

Datum
instaid_to_shortcode(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	char		digits[SHORTCODE_MAX_LEN];

	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("ID %lld has no text form", (long long) id),
				 errdetail("Only IDs from 0 to %lld have one.",
						   (long long) PG_INT64_MAX)));
	PG_RETURN_TEXT_P(cstring_to_text_with_len(digits,
											  encode_shortcode(id, digits)));
}

Datum
instaid_from_shortcode(PG_FUNCTION_ARGS)
{
	text	   *input = PG_GETARG_TEXT_PP(0);
	int64		id = 0;
	size_t		position;
	ShortcodeStatus status;

	status = decode_shortcode(VARDATA_ANY(input), VARSIZE_ANY_EXHDR(input),
							  &id, &position);
	if (status != SHORTCODE_VALID)
		report_invalid(input, status, position);
	PG_RETURN_INT64(id);
}
