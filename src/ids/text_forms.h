/*
 * IDs as text: shortcodes, and Crockford's base32.
 *
 *	               digits                           bits  length  0         2^63 - 1
 *	  shortcode    A-Z a-z 0-9 - _                  6     1..11   A         H__________
 *	  base32       0-9 A-Z without I, L, O and U    5     13      000...0   7ZZZZZZZZZZZZ
 *
 * Both have the most significant digit first.  A shortcode is as short as
 * possible.  Base32 always has 13 digits, whose order is that of their
 * characters, so that texts sort like their IDs.
 *
 * Only IDs that are not negative have a text form.  Each ID has one shortcode,
 * and leading zeros are refused.  Base32 can be in lower case, can have I or L
 * for 1 and O for 0, and hyphens in it are ignored.
 */
#ifndef INSTAID_TEXT_FORMS_H
#define INSTAID_TEXT_FORMS_H

#define SHORTCODE_ALPHABET \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
#define SHORTCODE_BITS		6
#define SHORTCODE_MAX_LEN	11
#define LAST_SHORTCODE		"H__________"

#define BASE32_ALPHABET		"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
#define BASE32_BITS			5
#define BASE32_LEN			13
#define LAST_BASE32			"7ZZZZZZZZZZZZ"

StaticAssertDecl(sizeof(SHORTCODE_ALPHABET) == (1 << SHORTCODE_BITS) + 1 &&
				 sizeof(BASE32_ALPHABET) == (1 << BASE32_BITS) + 1,
				 "an alphabet must have a character for each digit");
StaticAssertDecl(SHORTCODE_MAX_LEN == (63 + SHORTCODE_BITS - 1) / SHORTCODE_BITS &&
				 BASE32_LEN == (63 + BASE32_BITS - 1) / BASE32_BITS,
				 "a text form must hold 63 bits");

/* What is wrong with a text at its byte *position, counted from 0 */
typedef enum
{
	TEXT_VALID,
	TEXT_NOT_A_DIGIT,
	TEXT_LEADING_ZERO,			/* of a shortcode with more digits */
	TEXT_TOO_GREAT,				/* this digit takes the ID above 2^63 - 1 */
	TEXT_TOO_LONG,				/* this is the 14th digit of base32 */
	TEXT_TOO_SHORT				/* whatever its characters are */
} TextStatus;

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

/* Write the BASE32_LEN digits of an ID that is not negative. */
static inline void
encode_base32(int64 id, char *digits)
{
	for (int i = BASE32_LEN - 1; i >= 0; i--)
	{
		digits[i] = BASE32_ALPHABET[id & ((1 << BASE32_BITS) - 1)];
		id >>= BASE32_BITS;
	}
}

/* The value of a digit in an alphabet of so many bits, or -1 */
static inline int
digit_value(const char *alphabet, int bits, char c)
{
	const char *digit = memchr(alphabet, c, 1 << bits);

	return digit ? (int) (digit - alphabet) : -1;
}

static inline int
base32_digit(char c)
{
	if (c >= 'a' && c <= 'z')
		c -= 'a' - 'A';
	if (c == 'I' || c == 'L')
		c = '1';
	if (c == 'O')
		c = '0';
	return digit_value(BASE32_ALPHABET, BASE32_BITS, c);
}

/* Read a shortcode into *id, or return what is wrong with it at *position. */
static inline TextStatus
decode_shortcode(const char *input, size_t len, int64 *id, size_t *position)
{
	int64		result = 0;

	for (*position = 0; *position < len; (*position)++)
	{
		int			digit = digit_value(SHORTCODE_ALPHABET, SHORTCODE_BITS, input[*position]);

		if (digit < 0)
			return TEXT_NOT_A_DIGIT;
		if (digit == 0 && *position == 0 && len > 1)
			return TEXT_LEADING_ZERO;
		if (result > PG_INT64_MAX >> SHORTCODE_BITS)
			return TEXT_TOO_GREAT;
		result = result << SHORTCODE_BITS | digit;
	}
	if (len == 0)
		return TEXT_TOO_SHORT;
	*id = result;
	return TEXT_VALID;
}

/*
 * Read base32 into *id, or return what is wrong with it at *position.  13
 * digits have 65 bits; a first digit up to 7 has three of them.  The length
 * comes first: a shortcode, which is shorter, has no wrong digit.
 */
static inline TextStatus
decode_base32(const char *input, size_t len, int64 *id, size_t *position)
{
	uint64		result = 0;
	size_t		digits = 0;

	*position = 0;
	for (size_t i = 0; i < len; i++)
		digits += input[i] != '-';
	if (digits < BASE32_LEN)
		return TEXT_TOO_SHORT;

	digits = 0;
	for (; *position < len; (*position)++)
	{
		int			digit;

		if (input[*position] == '-')
			continue;
		digit = base32_digit(input[*position]);
		if (digit < 0)
			return TEXT_NOT_A_DIGIT;
		if (digits == 0 && digit > PG_INT64_MAX >> ((BASE32_LEN - 1) * BASE32_BITS))
			return TEXT_TOO_GREAT;
		if (digits == BASE32_LEN)
			return TEXT_TOO_LONG;
		result = result << BASE32_BITS | (uint64) digit;
		digits++;
	}
	*id = (int64) result;
	return TEXT_VALID;
}

#endif							/* INSTAID_TEXT_FORMS_H */
