/*
 * IDs as text: Instagram's shortcodes.
 *
 *	  digits             bits  length  0   2^63 - 1
 *	  A-Z a-z 0-9 - _    6     1..11   A   H__________
 *
 * The most significant digit is the first.  Only IDs that are not negative
 * have a shortcode.  Each has one: it is as short as possible, and leading
 * zeros are refused.
 */
#ifndef INSTAID_TEXT_FORMS_H
#define INSTAID_TEXT_FORMS_H

#define SHORTCODE_ALPHABET \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
#define SHORTCODE_BITS		6
#define SHORTCODE_MAX_LEN	11
#define LAST_SHORTCODE		"H__________"

StaticAssertDecl(sizeof(SHORTCODE_ALPHABET) == (1 << SHORTCODE_BITS) + 1,
				 "the alphabet must have a character for each digit");
StaticAssertDecl(SHORTCODE_MAX_LEN == (63 + SHORTCODE_BITS - 1) / SHORTCODE_BITS,
				 "a shortcode must hold 63 bits");

/* What is wrong with a text at its byte *position, counted from 0 */
typedef enum
{
	SHORTCODE_VALID,
	SHORTCODE_EMPTY,
	SHORTCODE_NOT_A_DIGIT,
	SHORTCODE_LEADING_ZERO,		/* before other digits */
	SHORTCODE_TOO_GREAT			/* this digit takes the ID above 2^63 - 1 */
} ShortcodeStatus;

/* Write the shortcode of an ID that is not negative, and return its length. */
static inline int
encode_shortcode(int64 id, char *digits)
{
	int			len = 1;

	while (len < SHORTCODE_MAX_LEN && id >> (len * SHORTCODE_BITS) != 0)
		len++;
	for (int i = len - 1; i >= 0; i--)
	{
		digits[i] = SHORTCODE_ALPHABET[id & ((1 << SHORTCODE_BITS) - 1)];
		id >>= SHORTCODE_BITS;
	}
	return len;
}

/* The value of a digit, or -1 */
static inline int
digit_value(char c)
{
	const char *alphabet = SHORTCODE_ALPHABET;
	const char *digit = memchr(alphabet, c, 1 << SHORTCODE_BITS);

	return digit ? (int) (digit - alphabet) : -1;
}

/* Read a shortcode into *id, or return what is wrong with it at *position. */
static inline ShortcodeStatus
decode_shortcode(const char *input, size_t len, int64 *id, size_t *position)
{
	int64		result = 0;

	for (*position = 0; *position < len; (*position)++)
	{
		int			digit = digit_value(input[*position]);

		if (digit < 0)
			return SHORTCODE_NOT_A_DIGIT;
		if (digit == 0 && *position == 0 && len > 1)
			return SHORTCODE_LEADING_ZERO;
		if (result > PG_INT64_MAX >> SHORTCODE_BITS)
			return SHORTCODE_TOO_GREAT;
		result = result << SHORTCODE_BITS | digit;
	}
	if (len == 0)
		return SHORTCODE_EMPTY;
	*id = result;
	return SHORTCODE_VALID;
}

#endif							/* INSTAID_TEXT_FORMS_H */
