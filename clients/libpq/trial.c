/* libpq: parameters and results in binary, COPY BINARY, and a pipeline */
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

static PGconn *connection;
static int	done,
			failed;
static const char *const tables[] = {"photos", "comments"};
static const int64_t extremes[] = {INT64_C(4001511883701836730), INT64_MAX, INT64_MIN, 1};

static void
ok(int good, const char *name)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++done, name);
	if (!good)
	{
		failed++;
		printf("# %s", PQerrorMessage(connection));
	}
}

static PGresult *
run(const char *sql)
{
	return PQexec(connection, sql);
}

static int64_t
get_id(const PGresult *result, int row)
{
	int64_t		id = 0;

	if (PQntuples(result) > row && PQgetlength(result, row, 0) == 8)
		memcpy(&id, PQgetvalue(result, row, 0), 8);
	return (int64_t) be64toh((uint64_t) id);
}

/* An ID as a parameter, and as the result, in binary: that of bigint, for both types */
static PGresult *
exec_with_id(const char *sql, int64_t id)
{
	/* recipe: binary */
	int64_t		bits = (int64_t) htobe64((uint64_t) id);
	const char *values[] = {(const char *) &bits};
	const Oid	types[] = {20};		/* bigint */
	const int	lengths[] = {8};
	const int	formats[] = {1};

	return PQexecParams(connection, sql, 1, types, values, lengths, formats, 1);
	/* end of recipe */
}

static void
test_binary(const char *table)
{
	char		sql[200];
	int			good = 1;

	for (int i = 0; i < 4; i++)
	{
		PGresult   *result;

		snprintf(sql, sizeof sql, "INSERT INTO insta5.%s (id) VALUES ($1) RETURNING id", table);
		result = exec_with_id(sql, extremes[i]);
		good &= get_id(result, 0) == extremes[i];
		PQclear(result);
		snprintf(sql, sizeof sql, "SELECT id FROM insta5.%s WHERE id = $1", table);
		result = exec_with_id(sql, extremes[i]);
		good &= get_id(result, 0) == extremes[i];
		PQclear(result);
		snprintf(sql, sizeof sql, "SELECT id FROM insta5.%s WHERE id = ANY (ARRAY[$1])", table);
		result = exec_with_id(sql, extremes[i]);
		good &= get_id(result, 0) == extremes[i];
		PQclear(result);
	}
	snprintf(sql, sizeof sql, "%s: all 64 bits, in binary", table);
	ok(good, sql);
}

/* COPY BINARY has the same bytes for both types. */
static void
test_copy(const char *table)
{
	char		sql[200];
	char		buffer[200] = "PGCOPY\n\377\r\n";
	int			length = 19;
	PGresult   *result;

	snprintf(sql, sizeof sql, "TRUNCATE insta5.%s CASCADE", table);
	PQclear(run(sql));
	snprintf(sql, sizeof sql, "COPY insta5.%s (id) FROM STDIN (FORMAT binary)", table);
	PQclear(run(sql));
	for (int i = 0; i < 4; i++)
	{
		int64_t		bits = (int64_t) htobe64((uint64_t) extremes[i]);

		memcpy(buffer + length, "\0\1\0\0\0\10", 6);
		memcpy(buffer + length + 6, &bits, 8);
		length += 14;
	}
	memcpy(buffer + length, "\377\377", 2);
	PQputCopyData(connection, buffer, length + 2);
	PQputCopyEnd(connection, NULL);
	while ((result = PQgetResult(connection)) != NULL)
		PQclear(result);
	snprintf(sql, sizeof sql, "SELECT string_agg(id::text, ',' ORDER BY id) FROM insta5.%s", table);
	result = run(sql);
	snprintf(sql, sizeof sql, "%s: all 64 bits, by COPY BINARY", table);
	ok(PQntuples(result) == 1 && strcmp(PQgetvalue(result, 0, 0),
			"-9223372036854775808,1,4001511883701836730,9223372036854775807") == 0, sql);
	PQclear(result);
}

/* Are these IDs of shard 5, in order? */
static int
are_new_ids(const PGresult *result, int count)
{
	int64_t		last = INT64_C(1) << 60;

	if (PQntuples(result) != count)
		return 0;
	for (int i = 0; i < count; i++)
	{
		int64_t		id = strtoll(PQgetvalue(result, i, 0), NULL, 10);

		if (id <= last || (id >> 10 & 8191) != 5)
			return 0;
		last = id;
	}
	return 1;
}

int
main(void)
{
	PGresult   *result;
	Oid			instaid;
	int64_t		last = 0;
	int			good = 1;

	connection = PQconnectdb("");
	if (PQstatus(connection) != CONNECTION_OK)
	{
		fprintf(stderr, "%s", PQerrorMessage(connection));
		return 1;
	}

	result = run("INSERT INTO insta5.photos (caption) VALUES ('a') RETURNING id");
	ok(are_new_ids(result, 1), "default and RETURNING");
	PQclear(result);
	result = run("INSERT INTO insta5.photos (caption) SELECT n FROM generate_series(1, 2500) n RETURNING id, caption");
	for (int i = 0; i < PQntuples(result); i++)
		good &= atoi(PQgetvalue(result, i, 1)) == i + 1;
	ok(good && are_new_ids(result, 2500), "bulk insert: IDs in the order of the rows");
	PQclear(result);

	PQclear(run("COPY insta5.photos (caption) FROM STDIN"));
	for (int i = 0; i < 2500; i++)
		PQputCopyData(connection, "copied\n", 7);
	PQputCopyEnd(connection, NULL);
	while ((result = PQgetResult(connection)) != NULL)
		PQclear(result);
	result = run("SELECT id FROM insta5.photos WHERE caption = 'copied' ORDER BY id");
	ok(are_new_ids(result, 2500), "COPY, IDs made by the server");
	PQclear(result);

	for (int i = 0; i < 2; i++)
	{
		test_binary(tables[i]);
		test_copy(tables[i]);
	}

	result = run("SELECT 'instaid.id'::regtype::oid, 'instaid.id[]'::regtype::oid");
	instaid = (Oid) strtoul(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	result = run("SELECT id, ARRAY[id] FROM insta5.comments WHERE id = 4001511883701836730");
	ok(PQftype(result, 0) == instaid && PQfsize(result, 0) == 8 &&
	   strcmp(PQgetvalue(result, 0, 1), "{4001511883701836730}") == 0, "the result has the OID of instaid.id, and 8 bytes");
	PQclear(result);

	/* in one transaction: in a pool, a prepared statement lasts no longer */
	PQclear(run("BEGIN"));
	PQclear(PQprepare(connection, "compare", "SELECT 1 FROM insta5.comments WHERE id = $1", 0, NULL));
	result = PQdescribePrepared(connection, "compare");
	ok(PQparamtype(result, 0) == 20, "a parameter that is compared with instaid.id is a bigint");
	PQclear(result);
	PQclear(PQprepare(connection, "insert", "INSERT INTO insta5.comments (id) VALUES ($1)", 0, NULL));
	result = PQdescribePrepared(connection, "insert");
	ok(PQparamtype(result, 0) == instaid, "a parameter that is inserted is an instaid.id");
	PQclear(result);
	{
		const char *value[] = {"5"};

		result = PQexecPrepared(connection, "insert", 1, value, NULL, NULL, 0);
		ok(PQresultStatus(result) == PGRES_COMMAND_OK, "a prepared statement");
		PQclear(result);
	}
	PQclear(run("ROLLBACK"));
	result = run("SELECT 1 FROM insta5.comments WHERE id = 5");
	ok(PQntuples(result) == 0, "a transaction that is rolled back");
	PQclear(result);

	PQenterPipelineMode(connection);
	for (int i = 0; i < 100; i++)
		PQsendQueryParams(connection, "INSERT INTO insta5.photos (caption) VALUES ('p') RETURNING id",
						  0, NULL, NULL, NULL, NULL, 1);
	PQpipelineSync(connection);
	for (int i = 0; i < 100; i++)
	{
		result = PQgetResult(connection);
		good &= get_id(result, 0) > last;
		last = get_id(result, 0);
		PQclear(result);
		PQclear(PQgetResult(connection));
	}
	ok(good, "a pipeline of 100 inserts: IDs in order");

	PQfinish(connection);
	printf("1..%d\n", done);
	return failed > 0;
}
