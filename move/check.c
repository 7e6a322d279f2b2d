/* What would stop a move, before anything is touched. */
#include <stdio.h>
#include <string.h>

#include "move.h"
#include "texts.h"

/* Print a text, or null, as JSON does. */
void
print_json(const char *text)
{
	if (!text)
	{
		printf("null");
		return;
	}
	putchar('"');
	for (const char *c = text; *c; c++)
	{
		int			code = control_at(&c);

		if (code >= 0)
			printf("\\u%04x", code);
		else
			printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	}
	putchar('"');
}

static void
finding(Move *m, const char *severity, const char *code, const char *object, const char *cure)
{
	bool		is_error = strcmp(severity, "error") == 0;

	m->errors += is_error;
	if (!m->options.json)
	{
		printf("  %c %s: %s\n", is_error ? '!' : '-', plain(object), plain(cure));
		return;
	}
	printf("%s\n  {\"severity\": \"%s\", \"code\": \"%s\", \"object\": ", m->findings++ ? "," : "[", severity, code);
	print_json(object);
	printf(", \"cure\": ");
	print_json(cure);
	putchar('}');
}

/* Print what a query of the check has found; returns how much of it is in the way. */
int
show_findings(Move *m, PGresult *found)
{
	int			before = m->errors;

	for (int i = 0; i < PQntuples(found); i++)
		finding(m, column(found, i, "severity"), column(found, i, "code"), column(found, i, "object"),
				column(found, i, "cure"));
	return m->errors - before;
}

/* Can one server connect to the other?  A subscription that is not kept tells. */
bool
reaches(Server *s, Server *other)
{
	return run_secretly(s, "BEGIN; CREATE SUBSCRIPTION instaid_move_probe CONNECTION %s PUBLICATION instaid_move_probe"
						" WITH (slot_name = NONE, create_slot = false, enabled = false, copy_data = false); ROLLBACK",
						literal(s, other->reach));
}

static void
check_reach(Move *m, Server *s, Server *other, const char *or_else)
{
	if (s->error || reaches(s, other) || is_lost(s))
		return;
	finding(m, "error", "unreachable", fmt("the %s's server cannot use the %s: %s", s->name, other->name, s->error),
			strcmp(s->sqlstate, "42501") == 0 ? fmt("%s%s", PQserverVersion(s->conn) < 160000 ? "use a superuser" :
													"GRANT what is missing", or_else) :
			fmt("give --%s%s%s", reach_option(m, other), m->options.reverse ? ", also with --reverse" : "", or_else));
	forget_error(s);
}

/*
 * Who restores a definition runs its owner's functions, and those that it uses.  On the way back, PostgreSQL 15 runs
 * those in expressions as the subscription's owner, too.  Returns for how much a side's definitions need more trust.
 */
static int
check_trust(Move *m, Server *of)
{
	PGresult   *definers = rows(of, &sql_definers, m->shards);
	char	   *used = value(of, &sql_objects_used, m->shards);
	bool		is_applied = !m->options.one_way && PQserverVersion(m->source->conn) < 160000;
	int			before = m->errors;

	for (int i = 0; i < 1 + is_applied; i++)
	{
		Server	   *s = i ? m->source : m->target;
		PGresult   *found = rows(s, &sql_untrusted, column(definers, 0, "roles"), m->options.trusted,
								 column(definers, 0, "superusers"));

		for (int n = 0; n < PQntuples(found); n++)
		{
			char	   *role = PQgetvalue(found, n, 0);

			finding(m, "error", "trust", fmt("the shards have definitions of %s, whose functions would run with the"
											 " rights of %s on the %s", role, PQuser(s->conn), s->name),
					fmt("connect as %s to it, or trust this role: --trust %s", role, quoted(role)));
		}
		found = rows(s, &sql_objects_untrusted, used, m->options.trusted);
		for (int n = 0; n < PQntuples(found); n++)
		{
			char	   *role = column(found, n, "owner");

			finding(m, "error", "trust", fmt("the shards use or could use %s of the %s, which belongs"
											 " to %s", column(found, n, "name"), s->name, role),
					fmt("drop it there, or trust this role: --trust %s", quoted(role)));
		}
	}
	return m->errors - before;
}

/* Ask again, since other roles may create something at any time. */
int
trust_again(Move *m, Server *of)
{
	return check_trust(m, of) == 0 ? settled(m, "cannot see whose the definitions are") :
		fail(m, IN_THE_WAY, "there are definitions of a role that is not trusted",
			 "They have come since the check, or this command lacks a --trust that it had then.",
			 "Each line with ! above tells the cure. Run the same command again.");
}

/* A column whose sequence stays would get the same values on the target. */
static void
check_outer_sequences(Move *m)
{
	PGresult   *found = rows(m->source, &sql_outer_sequences, m->shards);

	for (int i = 0; i < PQntuples(found); i++)
	{
		char	   *sequence = column(found, i, "name"),
				   *last = column(found, i, "last");
		bool		is_beyond = value(m->target, &sql_is_beyond, sequence, last) != NULL;

		finding(m, is_beyond ? "remark" : "error", "sequence-outside",
				fmt("columns take values of sequence %s, which does not move, and stands at %s", sequence, last),
				is_beyond ? "the one of the target is beyond" :
				"ALTER SEQUENCE ... SET SCHEMA, or set the one of the target well beyond");
	}
}

/* What of the databases themselves is in the way, as other roles can have made it */
static void
check_sides(Move *m)
{
	for (int i = 0; i < 2; i++)
	{
		Server	   *s = i ? m->target : m->source;

		if (value(s, &sql_has_publication, m->name))
			finding(m, "error", "publication-exists", fmt("publication %s exists on the %s, and this role does not take"
														  " it for its own", m->name, s->name), "drop it");
		if (!(i ? m->seen.target.refuses : m->seen.source.refuses))
			continue;
		if (value(s, &sql_has_guards, m->shards, m->name))
			finding(m, "error", "old-copy", fmt("the %s has the old copy of a move that was made, and refuses writes to it",
												s->name), "move the shards from the server that serves them, or"
					" --finish that move, which drops the copy");
		else
			/* whoever may create schemas could have made it, to stop writes */
			finding(m, "error", "move-schema-exists", fmt("schema %s exists on the %s, which this move would take for its"
														  " own", m->name, s->name), "drop it");
	}
}

/* Values of a type arrive as texts, and another type of that name can read them otherwise. */
static void
check_types(Move *m, const char *used)
{
	const char *same_version = PQserverVersion(m->source->conn) / 10000 == PQserverVersion(m->target->conn) / 10000 ?
		"t" : "f";
	PGresult   *here = rows(m->source, &sql_types, used, same_version),
			   *there = rows(m->target, &sql_types, used, same_version);

	for (int i = 0; i < PQntuples(here); i++)
		for (int n = 0; n < PQntuples(there); n++)
			if (strcmp(column(here, i, "name"), column(there, n, "name")) == 0
				&& !is_same_text(column(here, i, "definition"), column(there, n, "definition")))
				finding(m, "error", "type-differs", fmt("type %s is %s on the source, and %s on the target",
														column(here, i, "name"), column(here, i, "definition"),
														column(there, n, "definition")), "make both the same");
}

static void
check_objects(Move *m)
{
	char	   *used = value(m->source, &sql_objects_used, m->shards),
			   *missing;

	for (int i = 0; i < 2 && used; i++)
		if ((missing = value(m->target, &sql_objects_missing, used, i ? "t" : "f")))
			finding(m, "error", "object-missing", fmt("%s lacks what the shards use: %s",
													  i ? "instaid of the target" : "the target", missing),
					i ? "let nothing use it" : "create it there");
	if (used)
		check_types(m, used);
}

static void
check_dependants(Move *m)
{
	PGresult   *found = rows(m->source, &sql_dependants, m->shards);

	/*
	 * partitions, children and extensions are told by check_source.sql, with
	 * another cure
	 */
	for (int i = 0; i < PQntuples(found); i++)
		if (!is_true(found, i, "is_child") && strncmp(column(found, i, "object"), "extension ", 10) != 0)
			finding(m, "error", "dependant", fmt("%s of the source uses the shards, and stays",
												 column(found, i, "object")), "drop it");
}

/* The settings that a connection string has, as an array: no log shall show the password in it. */
static char *
own_settings(const char *connection)
{
	static const char *const names[] = {"statement_timeout", "transaction_timeout"};
	char	   *own = "{}";

	for (int i = 0; i < 2; i++)
		if (strstr(connection, names[i]))
			own = append(own, names[i]);
	return own;
}

/* The role that another server uses to read from this one */
static const char *
reader_of(Server *s)
{
	PQconninfoOption *given = PQconninfoParse(s->reach, NULL);

	for (PQconninfoOption *o = given; o && o->keyword; o++)
		if (o->val && strcmp(o->keyword, "user") == 0)
			return o->val;
	return PQuser(s->conn);
}

static void
check_replication(Move *m, const char *tables)
{
	show_findings(m, rows(m->source, &sql_check_publisher, m->shards, tables));
	show_findings(m, rows(m->source, &sql_check_triggers, m->shards));
	show_findings(m, rows(m->source, &sql_check_identity, m->shards, m->options.full_identity ? "t" : "f"));
	show_findings(m, rows(m->source, &sql_check_timeout, reach_option(m, m->source), own_settings(m->source->reach),
						  "source"));
	show_findings(m, rows(m->target, &sql_check_subscriber));
	show_findings(m, rows(m->target, &sql_check_settings, "target"));
	show_findings(m, rows(m->target, &sql_check_room, "target", "2"));
	check_reach(m, m->target, m->source, "");
	show_findings(m, rows(m->source, &sql_check_row_security, m->shards, reader_of(m->source)));
	show_findings(m, rows(m->source, &sql_check_money, m->shards, value(m->target, &sql_lc_monetary)));
	if (m->options.one_way)
		return;
	show_findings(m, rows(m->target, &sql_check_way_back));
	show_findings(m, rows(m->source, &sql_check_settings, "source"));
	show_findings(m, rows(m->source, &sql_check_room, "source", "1"));
	show_findings(m, rows(m->target, &sql_check_timeout, reach_option(m, m->target), own_settings(m->target->reach),
						  "target"));
	check_reach(m, m->source, m->target, ", or move with --one-way");
}

/* Name all that would stop the move. */
int
check(Move *m)
{
	char	   *editions[2] = {m->source->edition, m->target->edition},
			   *encodings[2] = {value(m->source, &sql_encoding), value(m->target, &sql_encoding)};
	int			versions[2] = {PQserverVersion(m->source->conn) / 10000, PQserverVersion(m->target->conn) / 10000};
	PGresult   *size = rows(m->source, &sql_size, m->shards, (char *) NULL);

	if (m->source->error || m->target->error)
		return settled(m, "cannot check");
	m->findings = m->errors = 0;
	if (!m->options.json)
		say("%s: %s tables, %s", m->shown, column(size, 0, "tables"), column(size, 0, "size"));
	/* no query tells how much is free */
	finding(m, "remark", "disk", fmt("the target needs %s of free disk or more", column(size, 0, "size")),
			"this is not checked");
	if (m->options.by_dump)
		finding(m, "remark", "dump", "writes will be refused while all of that is copied and compared",
				"move without --dump where roles may replicate");
	else
	{
		finding(m, "remark", "disk", fmt("the source needs free disk for all WAL that is written during the copy%s",
										 m->options.one_way ? "" : ", and the target until --finish while the source is"
										 " down"), "this is not checked");
		check_replication(m, column(size, 0, "tables"));
	}
	show_findings(m, rows(m->source, &sql_check_source, m->shards));
	show_findings(m, rows(m->source, &sql_check_children, m->shards));
	check_dependants(m);
	if (strcmp(editions[0], editions[1]) != 0)
		finding(m, "error", "edition", fmt("the source has %s, and the target %s", editions[0], editions[1]),
				"install the same there, and convert the database before or after the move");
	else
		show_findings(m, rows(m->target, &sql_check_target, m->shards, value(m->source, &sql_shard_ids, m->shards),
							  value(m->source, &sql_owners, m->shards)));
	if (versions[1] < versions[0])
		finding(m, "error", "version", fmt("the target's PostgreSQL, %d, is older than the source's, %d", versions[1],
										   versions[0]), "upgrade it");
	check_objects(m);
	if (strcmp(encodings[0], encodings[1]) != 0)
		finding(m, "remark", "encoding", fmt("encoding and locale are %s on the source, %s on the target", encodings[0],
											 encodings[1]), "texts may sort otherwise");
	check_sides(m);
	check_trust(m, m->source);
	check_outer_sequences(m);
	if (m->options.json)
		printf("%s\n", m->findings ? "\n]" : "[]");
	if (m->source->error || m->target->error)
		return settled(m, "cannot check");
	return m->errors == 0 ? DONE :
		fail(m, IN_THE_WAY, fmt("%d thing%s in the way", m->errors, m->errors > 1 ? "s are" : " is"),
			 "Each line with ! above tells the cure. Nothing was changed.", "Run the same command again.");
}
