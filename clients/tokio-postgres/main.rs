//! tokio-postgres

use bytes::BytesMut;
use std::env::var;
use std::error::Error;
use tap::{are_new_ids, Tap};
use tokio_postgres::types::{to_sql_checked, FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Client, NoTls};

#[path = "../lib/tap.rs"]
mod tap;

const BIG: i64 = 4001511883701836730; // a double makes it 4001511883701836800

// recipe: newtype
/// instaid.id, whose 64 bits are those of a bigint
#[derive(Clone, Copy, Debug, PartialEq)]
struct InstaId(i64);

fn is_id(t: &Type) -> bool {
    *t == Type::INT8 || t.schema() == "instaid" && t.name() == "id"
}

impl<'a> FromSql<'a> for InstaId {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        i64::from_sql(&Type::INT8, raw).map(InstaId)
    }
    fn accepts(t: &Type) -> bool {
        is_id(t)
    }
}

impl ToSql for InstaId {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.to_sql(&Type::INT8, out)
    }
    fn accepts(t: &Type) -> bool {
        is_id(t)
    }
    to_sql_checked!();
}
// end of recipe

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The first column
async fn values<T: for<'a> FromSql<'a>>(
    client: &Client,
    query: &str,
    parameters: Parameters<'_>,
) -> Result<Vec<T>, tokio_postgres::Error> {
    client.query(query, parameters).await?.iter().map(|row| row.try_get(0)).collect()
}

/// The first column of the first row
async fn value<T: for<'a> FromSql<'a>>(
    client: &Client,
    query: &str,
    parameters: Parameters<'_>,
) -> Result<T, tokio_postgres::Error> {
    client.query_one(query, parameters).await?.try_get(0)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = format!(
        "host={} port={} user={} password={} dbname={}",
        var("PGHOST")?, var("PGPORT")?, var("PGUSER")?, var("PGPASSWORD")?, var("PGDATABASE")?
    );
    let (mut client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    let mut tap = Tap(0, 0);
    // pgbouncer before 1.21 knows prepared statements, which this client always uses, within a transaction only
    let transaction = var("VIA")? == "pgbouncer";
    if transaction {
        client.batch_execute("BEGIN").await?;
    }

    let insert = "INSERT INTO insta5.photos (caption) VALUES ('a') RETURNING id";
    tap.is("a default, by RETURNING, bigint", true, value(&client, insert, &[]).await.map(|id| are_new_ids(&[id], 1)));
    let insert = "INSERT INTO insta5.comments (body) VALUES ('a') RETURNING id";
    let new = value(&client, insert, &[]).await.map(|id: InstaId| are_new_ids(&[id.0], 1));
    tap.is("a default, by RETURNING, instaid.id", true, new);

    let captions: Vec<String> = (0..2500).map(|i| format!("caption {}", i)).collect();
    let insert = "INSERT INTO insta5.photos (caption) SELECT unnest($1::text[]) RETURNING id";
    let rows = client.query(insert, &[&captions]).await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    tap.is("many rows in one INSERT: IDs in order", true, Ok::<_, ()>(are_new_ids(&ids, 2500)));
    let query = "SELECT caption FROM insta5.photos WHERE id = ANY ($1) ORDER BY id";
    tap.is("many rows in one INSERT: in the order of the rows", captions, values(&client, query, &[&ids]).await);
    let copied = "SELECT count(*) FROM insta5.photos WHERE caption = 'copied' AND instaid.extract_shard_id(id) = 5";
    copy(&client, "COPY insta5.photos (caption) FROM STDIN", "copied\ncopied\n".to_string()).await?;
    tap.is("COPY, IDs made by the server", 2i64, value(&client, copied, &[]).await);
    copy(&client, "COPY insta5.photos (id) FROM STDIN", format!("{}\n", BIG)).await?;
    copy(&client, "COPY insta5.comments (id, photo_id) FROM STDIN", format!("{}\t{}\n", BIG, BIG)).await?;
    let brought = "SELECT photo_id FROM insta5.comments WHERE photo_id IS NOT NULL";
    tap.is("COPY, IDs brought along", InstaId(BIG), value(&client, brought, &[]).await);

    for id in [BIG, i64::MAX, i64::MIN, 1] {
        tap.is(&format!("64 bits, bigint: {}", id), id, value(&client, "SELECT $1::bigint", &[&id]).await);
        let id = InstaId(id);
        tap.is(&format!("64 bits, {:?}", id), id, value(&client, "SELECT $1::instaid.id", &[&id]).await);
    }
    for table in ["photos", "comments"] {
        let query = format!("SELECT count(*) FROM insta5.{} WHERE id = $1 AND id = ANY ($2)", table);
        tap.is(&format!("parameters of i64 for {}", table), 1i64, value(&client, &query, &[&BIG, &vec![BIG, 1]]).await);
        let ids = vec![InstaId(BIG), InstaId(1)];
        tap.is(&format!("parameters of InstaId for {}", table), 1i64, value(&client, &query, &[&InstaId(BIG), &ids]).await);
    }
    let insert = "INSERT INTO insta5.comments (likers) VALUES ($1) RETURNING likers";
    let likers = vec![InstaId(BIG), InstaId(7)];
    tap.is("an array column", likers.clone(), value(&client, insert, &[&likers]).await);
    tap.is("a null", None, value::<Option<InstaId>>(&client, "SELECT NULL::instaid.id", &[]).await);
    let refused = "cannot convert between the Rust type `i64` and the Postgres type `instaid.id`";
    tap.fails("read instaid.id as i64", refused, value::<i64>(&client, "SELECT 1::instaid.id", &[]).await);
    tap.fails("an i64 in an INSERT", refused, client.execute("INSERT INTO insta5.comments (id) VALUES ($1)", &[&BIG]).await);
    let insert = "INSERT INTO insta5.comments (id) VALUES ($1::bigint)";
    tap.is("an i64 in an INSERT with a cast", 1, client.execute(insert, &[&5i64]).await);

    let find = client.prepare("SELECT id FROM insta5.comments WHERE id = $1").await?;
    tap.is("the types of columns", "instaid.id".to_string(), {
        let kind = find.columns()[0].type_();
        Ok::<_, ()>(format!("{}.{}", kind.schema(), kind.name()))
    });
    let mut found = Vec::new();
    for _ in 0..20 {
        found.push(client.query_one(&find, &[&BIG]).await?.get::<_, InstaId>(0));
    }
    tap.is("a prepared statement, twenty times", vec![InstaId(BIG); 20], Ok::<_, ()>(found));
    if transaction {
        client.batch_execute("COMMIT").await?;
    }

    let undo = client.transaction().await?;
    let row = undo.query_one("INSERT INTO insta5.photos DEFAULT VALUES RETURNING id", &[]).await?;
    undo.rollback().await?;
    let again = client.transaction().await?;
    let count = again.query_one("SELECT count(*) FROM insta5.photos WHERE id = $1", &[&row.get::<_, i64>(0)]).await?;
    tap.is("a transaction that rolls back", 0i64, count.try_get(0));

    println!("1..{}", tap.0);
    std::process::exit((tap.1 > 0) as i32)
}

/// Send this text to the server in one COPY.
async fn copy(client: &Client, statement: &str, text: String) -> Result<(), Box<dyn Error>> {
    let sink = client.copy_in(statement).await?;
    futures_util::pin_mut!(sink);
    futures_util::SinkExt::send(&mut sink, bytes::Bytes::from(text)).await?;
    sink.finish().await?;
    Ok(())
}
