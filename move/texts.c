/*
 * What pg_dump writes of the shards of both sides, compared.  Nothing of these texts is run.
 *
 * An expression that was restored is written otherwise: (a AND b) AND c as a AND b AND c, and
 * (ARRAY['a'::varchar])::text[] as ARRAY[('a'::varchar)::text]; a column of a view without a name that
 * is NULL::integer gets the name int4.  So a text is compared by its tokens, without the parentheses and
 * the casts that come and go in this way.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "texts.h"

typedef struct Token
{
	const char *at;
	int			length;
	int			other;			/* the parenthesis that belongs to it, or -1 */
	bool		is_cast;
	bool		is_array;		/* a cast to an array */
	bool		is_gone;
} Token;

typedef struct Entry
{
	char	   *head;			/* "t; Type: TABLE; Schema: s; Owner: app" */
	char	   *body;
	char	   *compared;
} Entry;

static bool
is_word(char c)
{
	return isalnum((unsigned char) c) || c == '_' || c == '.' || c == '$' || (c & 0x80);
}

/* Where a string, a quoted name, a dollar-quoted text or a comment ends that begins here; null if none does */
static const char *
end_of_quote(const char *at)
{
	const char *end;

	if (*at == '\'' || *at == '"')
	{
		bool		escapes = *at == '\'' && (at[-1] == 'E' || at[-1] == 'e');

		for (end = at + 1; *end && (*end != *at || end[1] == *at); end++)
			if (end[0] == *at || (escapes && end[0] == '\\' && end[1]))
				end++;
		return *end ? end + 1 : end;
	}
	if (*at == '$' && !isdigit((unsigned char) at[1]))
	{
		int			tag = 1;

		while (is_word(at[tag]) && at[tag] != '$')
			tag++;
		if (at[tag] != '$')
			return NULL;
		for (end = at + tag + 1; *end && strncmp(end, at, tag + 1) != 0; end++)
			;
		return *end ? end + tag + 1 : end;
	}
	return NULL;
}

/* Where the name of a type ends, as "character varying(20)[]" */
static const char *
end_of_type(const char *at, bool *is_array)
{
	static const char *const tails[] = {" varying", " precision"};
	static const char *const zones[] = {" with time zone", " without time zone"};
	const char *end;

	for (;;)
		if ((end = *at == '"' ? end_of_quote(at) : NULL))
			at = end;
		else if (is_word(*at))
			at++;
		else
			break;
	for (int i = 0; i < 2; i++)
		if (strncmp(at, tails[i], strlen(tails[i])) == 0)
			at += strlen(tails[i]);
	if (*at == '(' && at[strspn(at + 1, "0123456789,") + 1] == ')')
		at += strspn(at + 1, "0123456789,") + 2;
	for (int i = 0; i < 2; i++)
		if (strncmp(at, zones[i], strlen(zones[i])) == 0)
			at += strlen(zones[i]);
	for (*is_array = false; strncmp(at, "[]", 2) == 0; at += 2)
		*is_array = true;
	return at;
}

static Token *
tokens_of(const char *text, int *count)
{
	Token	   *tokens = NULL;
	int			room = 0,
				depth = -1;

	*count = 0;
	for (const char *at = text, *end; *at; at = end)
	{
		Token		token = {.at = at,.other = -1};

		if (isspace((unsigned char) *at))
		{
			end = at + 1;
			continue;
		}
		if (strncmp(at, "::", 2) == 0)
		{
			token.is_cast = true;
			end = end_of_type(at + 2, &token.is_array);
		}
		else if (!(end = end_of_quote(at)))
			for (end = at + 1; is_word(*at) && is_word(*end) && !(*end == '$' && end_of_quote(end)); end++)
				;
		token.length = end - at;
		if (*count == room)
			tokens = grown(tokens, room = 2 * room + 64, sizeof(Token));
		/* open ones are linked, innermost first, until they are closed */
		if (*at == '(' || *at == '[')
		{
			token.other = depth;
			depth = *count;
		}
		else if ((*at == ')' || *at == ']') && depth >= 0)
		{
			int			outer = tokens[depth].other;

			token.other = depth;
			tokens[depth].other = *count;
			depth = outer;
		}
		tokens[(*count)++] = token;
	}
	while (depth >= 0)
	{
		int			outer = tokens[depth].other;

		tokens[depth].other = -1;
		depth = outer;
	}
	return tokens;
}

static bool
is(const Token *token, const char *text)
{
	return token->length == (int) strlen(text) && strncmp(token->at, text, token->length) == 0;
}

/* The next token that is left, in a direction; count or -1 if there is none */
static int
next(const Token *tokens, int count, int i, int step)
{
	for (i += step; i >= 0 && i < count && tokens[i].is_gone; i += step)
		;
	return i;
}

/* What joins the operands between two parentheses: 'A' or 'O' if all of them are joined by AND or OR, else 0 */
static char
joiner(const Token *tokens, int count, int open)
{
	char		found = 0;

	for (int i = next(tokens, count, open, 1); i < tokens[open].other; i = next(tokens, count, i, 1))
	{
		char		here = is(&tokens[i], "AND") ? 'A' : is(&tokens[i], "OR") ? 'O' : 0;

		if (here && found && here != found)
			return 0;
		found = here ? here : found;
		if (tokens[i].other > i)
			i = tokens[i].other;
	}
	return found;
}

/* Leave out what a restore changes; returns whether something was. */
static bool
simplify(Token *tokens, int count)
{
	bool		is_changed = false;
	int			inside = -1;	/* the innermost parenthesis */

	for (int i = next(tokens, count, -1, 1); i < count; i = next(tokens, count, i, 1))
	{
		int			before = next(tokens, count, i, -1),
					after = next(tokens, count, i, 1);
		bool		is_element = inside >= 0 && is(&tokens[inside], "[");

		if (tokens[i].is_cast)
		{
			/* of an array, or of its element */
			bool		drops = (tokens[i].is_array && before >= 0 && (is(&tokens[before], "]") || is(&tokens[before], ")")))
				|| (is_element && after < count && (is(&tokens[after], ",") || is(&tokens[after], "]")));

			/* and a name behind it */
			if (after < count && is(&tokens[after], "AS") && next(tokens, count, after, 1) < count)
			{
				tokens[after].is_gone = tokens[next(tokens, count, after, 1)].is_gone = true;
				is_changed = true;
			}
			tokens[i].is_gone = drops;
			is_changed |= drops;
		}
		else if (tokens[i].other > i)
		{
			int			close = tokens[i].other,
						last = after < count ? after : close,
						behind = next(tokens, count, close, 1);
			bool		drops = false;

			if (is(&tokens[i], "(") && after < close)
			{
				/* one operand: a word, a text, ARRAY[...] or (...) */
				if (is(&tokens[after], "ARRAY"))
					last = next(tokens, count, after, 1);
				if (last < close && tokens[last].other > last)
					last = tokens[last].other;
				last = next(tokens, count, last, 1);
				/* an element of an array loses its casts, too */
				while (is_element && last < close && tokens[last].is_cast)
					last = next(tokens, count, last, 1);
				drops = last == close && (before < 0 || !is_word(tokens[before].at[tokens[before].length - 1]))
					&& (is(&tokens[after], "(") || is(&tokens[after], "ARRAY")
						|| (is_element && (is(&tokens[before], "[") || is(&tokens[before], ","))));
				/* operands of AND among those of another AND */
				if (!drops && inside >= 0 && joiner(tokens, count, i)
					&& joiner(tokens, count, i) == joiner(tokens, count, inside)
					&& (before == inside || is(&tokens[before], "AND") || is(&tokens[before], "OR"))
					&& (behind == tokens[inside].other || is(&tokens[behind], "AND") || is(&tokens[behind], "OR")))
					drops = true;
			}
			if (drops)
			{
				tokens[i].is_gone = tokens[close].is_gone = true;
				is_changed = true;
			}
			else
				inside = i;
		}
		else if (inside >= 0 && i == tokens[inside].other)
		{
			/* outwards, to one that is left and not closed yet */
			for (inside--; inside >= 0 && (tokens[inside].is_gone || tokens[inside].other <= i); inside--)
				;
		}
	}
	return is_changed;
}

/* The text as it is compared */
static char *
canonical(const char *text, bool is_sequence)
{
	int			count;
	Token	   *tokens = tokens_of(text, &count);
	char	   *result = grown(NULL, 2 * strlen(text) + 1, 1),
			   *to = result;

	while (simplify(tokens, count))
		;
	for (int i = 0; i < count; i++)
	{
		/*
		 * a freeze changes the maximum, and MAXIMUMS compares those of other
		 * sequences
		 */
		if (is_sequence && i + 1 < count && is(&tokens[i], "NO") && is(&tokens[i + 1], "MAXVALUE"))
			i++;
		else if (is_sequence && i + 1 < count && is(&tokens[i], "MAXVALUE"))
			i++;
		else if (!tokens[i].is_gone)
		{
			memcpy(to, tokens[i].at, tokens[i].length);
			to += tokens[i].length;
			*to++ = ' ';
		}
	}
	*to = '\0';
	free(tokens);
	return result;
}

/* Is it the same but for what a restore changes? */
bool
is_same_text(const char *source, const char *target)
{
	char	   *texts[2] = {canonical(source, false), canonical(target, false)};
	bool		is_same = strcmp(texts[0], texts[1]) == 0;

	free(texts[0]);
	free(texts[1]);
	return is_same;
}

static bool
is_type(const Entry *entry, const char *type)
{
	char	   *text = fmt("; Type: %s;", type);
	bool		found = strstr(entry->head, text) != NULL;

	free(text);
	return found;
}

static int
by_head(const void *a, const void *b)
{
	const Entry *x = a,
			   *y = b;
	int			order = strcmp(x->head, y->head);

	return order ? order : strcmp(x->compared, y->compared);
}

/* Take a line out of a text, and return it; or null. */
static char *
cut_line(char *text, const char *beginning)
{
	char	   *line = strstr(text, beginning),
			   *copy;
	size_t		length;

	if (!line)
		return NULL;
	length = 1 + strcspn(line + 1, "\n");
	copy = strndup(line + 1, length - 1);
	memmove(line, line + length, strlen(line + length) + 1);
	return copy;
}

/* The entries of a dump, sorted.  Servers of two versions write queries otherwise, which do not count then. */
static Entry *
entries_of(const char *dump, bool is_same_version, int *count)
{
	static const char head[] = "\n--\n-- Name: ";
	Entry	   *entries = NULL;
	char	   *method = strdup("");

	*count = 0;
	for (const char *at = strstr(dump, head), *end; at; at = end)
	{
		Entry		entry = {NULL, NULL, NULL};
		char	   *line,
				   *foot;

		at += strlen(head);
		end = strstr(at, head);
		entry.head = strndup(at, strcspn(at, "\n"));
		at += strlen(entry.head);
		entry.body = strndup(at, end ? (size_t) (end - at) : strlen(at));
		if ((foot = strstr(entry.body, "\n--\n-- PostgreSQL database dump complete")) && !end)
			*foot = '\0';
		if (strncmp(entry.body, "\n--\n", 4) == 0)
			memmove(entry.body, entry.body + 3, strlen(entry.body + 3) + 1);
		/* settings for the tables behind them */
		while (strstr(entry.head, "; Type: TABLE;") && strstr(method, " = ") && !strstr(entry.body, method))
		{
			char	   *longer = fmt("%s\n-- %s", entry.body, method);

			free(entry.body);
			entry.body = longer;
		}
		free(cut_line(entry.body, "\nSET default_tablespace = "));
		while ((line = cut_line(entry.body, "\nSET default_table_access_method = ")))
		{
			free(method);
			method = line;
		}
		/* what pg_dump 18 writes of an earlier server, and 18 refuses */
		while ((line = strstr(entry.body, "SET (pg_attver=")) && !is_same_version)
		{
			while (line > entry.body && line[-1] != '\n')
				line--;
			memmove(line, line + strcspn(line, "\n"), strlen(line + strcspn(line, "\n")) + 1);
		}
		if (strstr(entry.head, " instaid_move_guard; Type: TRIGGER;"))
			continue;
		if (!is_same_version && (is_type(&entry, "VIEW") || is_type(&entry, "MATERIALIZED VIEW")
								 || is_type(&entry, "RULE")
								 || ((is_type(&entry, "FUNCTION") || is_type(&entry, "PROCEDURE"))
									 && !strstr(entry.body, "\n    AS "))))
			entry.compared = strdup("");
		else
			entry.compared = canonical(entry.body, is_type(&entry, "SEQUENCE"));
		entries = grown(entries, *count + 1, sizeof(Entry));
		entries[(*count)++] = entry;
	}
	free(method);
	if (entries)
		qsort(entries, *count, sizeof(Entry), by_head);
	return entries;
}

/* Is there a line of it in the other text? */
static bool
has_line(const char *text, const char *line, size_t length)
{
	for (const char *at = text; *at; at += strcspn(at, "\n") + (at[strcspn(at, "\n")] != '\0'))
		if (strcspn(at, "\n") == length && strncmp(at, line, length) == 0)
			return true;
	return false;
}

/* Print the lines of a body that another one lacks. */
static void
print_body(const char *before, const char *body, const char *other)
{
	int			lines = 0;

	for (const char *line = body; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != '\0'))
	{
		size_t		length = strcspn(line, "\n");

		if (length == 0 || has_line(other, line, length))
			continue;
		if (lines++ == 10)
		{
			printf("    %s...\n", before);
			break;
		}
		printf("    %s%s\n", before, plain(fmt("%.*s", (int) length, line)));
	}
}

/* An entry's kind, name and owner, from its head */
static void
print_name(const Entry *entry)
{
	const char *type = strstr(entry->head, "; Type: "),
			   *schema = type ? strstr(type, "; Schema: ") : NULL,
			   *owner = schema ? strstr(schema, "; Owner: ") : NULL;

	if (!owner)
	{
		printf("%s", plain(entry->head));
		return;
	}
	for (const char *c = type + 8; c < schema; c++)
		putchar(tolower((unsigned char) *c));
	putchar(' ');
	schema += 10;
	if (schema[0] != '-')
		printf("%s.", plain(fmt("%.*s", (int) (owner - schema), schema)));
	printf("%s", plain(fmt("%.*s of %s", (int) (type - entry->head), entry->head, owner + 9)));
}

/*
 * Print what only one side has, and what differs, with its lines; returns how
 * many things.  A target that is being copied may lack indexes.
 */
int
compare_texts(const char *source, const char *target, bool is_same_version, bool lacks_indexes)
{
	static const char *const sides[2] = {"source", "target"};
	Entry	   *entries[2];
	int			counts[2],
				at[2] = {0, 0},
				differ = 0;

	entries[0] = entries_of(source, is_same_version, &counts[0]);
	entries[1] = entries_of(target, is_same_version, &counts[1]);
	while (at[0] < counts[0] || at[1] < counts[1])
	{
		const Entry *s = at[0] < counts[0] ? &entries[0][at[0]] : NULL,
				   *t = at[1] < counts[1] ? &entries[1][at[1]] : NULL;
		int			order = !s ? 1 : !t ? -1 : strcmp(s->head, t->head);

		at[0] += order <= 0;
		at[1] += order >= 0;
		if (order == 0 && strcmp(s->compared, t->compared) == 0)
			continue;
		if (order < 0 && lacks_indexes && is_type(s, "INDEX"))
			continue;
		if (++differ > 20)
			continue;
		printf(order == 0 ? "  differs: " : "  only on the %s: ", sides[order > 0]);
		print_name(order > 0 ? t : s);
		putchar('\n');
		if (order == 0)
		{
			print_body("source: ", s->body, t->body);
			print_body("target: ", t->body, s->body);
		}
		else
			print_body("", order > 0 ? t->body : s->body, "");
	}
	if (differ > 20)
		printf("  and %d more\n", differ - 20);
	fflush(stdout);
	return differ;
}
