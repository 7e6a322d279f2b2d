import java.sql.Connection;
import java.sql.DriverManager;
import java.util.*;
import java.util.function.Function;
import javax.persistence.Entity;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.JoinColumn;
import javax.persistence.ManyToOne;
import javax.persistence.SequenceGenerator;
import javax.persistence.Table;
import org.hibernate.Query;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.StatelessSession;
import org.hibernate.annotations.GenericGenerator;
import org.hibernate.annotations.Parameter;
import org.hibernate.cfg.Configuration;
import org.hibernate.dialect.Dialect;
import org.hibernate.dialect.PostgreSQLDialect;
import org.hibernate.tool.hbm2ddl.DatabaseMetadata;

@Entity
@Table(name = "photos", schema = "insta5")
class Photo
{
	// recipe: generator
	@Id
	@GeneratedValue(generator = "insta5")
	@GenericGenerator(name = "insta5", strategy = "ShardId", parameters = @Parameter(name = "schema", value = "insta5"))
	Long id;
	// end of recipe
	String caption;
}

@Entity
@Table(name = "comments", schema = "insta5")
class Comment
{
	@Id
	@GeneratedValue(generator = "insta5")
	@GenericGenerator(name = "insta5", strategy = "ShardId", parameters = @Parameter(name = "schema", value = "insta5"))
	Long id;
	@ManyToOne
	@JoinColumn(name = "photo_id")
	Photo photo;
	String body;
}

@Entity
@Table(name = "photos", schema = "insta5")
class IdentityPhoto
{
	// recipe: entity
	@Id
	@GeneratedValue(strategy = GenerationType.IDENTITY)
	Long id;
	// end of recipe
	String caption;
}

@Entity
@Table(name = "photos", schema = "insta5")
class SequencePhoto
{
	@Id
	@GeneratedValue(generator = "sequence")
	@SequenceGenerator(name = "sequence", sequenceName = "insta5.table_id_seq", allocationSize = 1)
	Long id;
}

/** without a generator: the application brings the ID along */
@Entity
@Table(name = "photos", schema = "insta5")
class AssignedPhoto
{
	@Id
	Long id;

	AssignedPhoto() {}
	AssignedPhoto(long id) { this.id = id; }
}

@Entity
@Table(name = "comments", schema = "insta5")
class AssignedComment
{
	@Id
	Long id;
	Long photo_id;

	AssignedComment() {}
	AssignedComment(long id, long photo) { this.id = id; photo_id = photo; }
}

/** Hibernate */
class Trial extends Tap
{
	static final Class<?>[] ENTITIES = { Photo.class, Comment.class, IdentityPhoto.class, SequencePhoto.class,
		AssignedPhoto.class, AssignedComment.class };

	static final Dialect DIALECT = new PostgreSQLDialect();

	static Configuration configuration(Class<?>... entities)
	{
		Configuration configuration = new Configuration()
			.setProperty("hibernate.connection.driver_class", "org.postgresql.Driver")
			.setProperty("hibernate.connection.url", URL + (POOLED ? "?prepareThreshold=0" : ""))
			.setProperty("hibernate.connection.username", USER)
			.setProperty("hibernate.connection.password", PASSWORD)
			.setProperty("hibernate.dialect", DIALECT.getClass().getName())
			.setProperty("hibernate.jdbc.batch_size", "50");
		for (Class<?> entity : entities)
			configuration.addAnnotatedClass(entity);
		return configuration;
	}

	/** Do some work in a transaction. */
	static <T> T transaction(SessionFactory factory, Function<Session, T> work)
	{
		Session session = factory.openSession();
		try
		{
			session.beginTransaction();
			T result = work.apply(session);
			session.getTransaction().commit();
			return result;
		}
		finally
		{
			session.close();
		}
	}

	/** The ID of a new row. */
	static List<Long> save(SessionFactory factory, Object entity)
	{
		return List.of((Long) transaction(factory, session -> session.save(entity)));
	}

	static Object query(SessionFactory factory, String query, Object... parameters)
	{
		return transaction(factory, session -> {
			Query prepared = session.createQuery(query);
			for (int i = 0; i < parameters.length; i++)
				if (parameters[i] instanceof List)
					prepared.setParameterList("p" + i, (List<?>) parameters[i]);
				else
					prepared.setParameter("p" + i, parameters[i]);
			return prepared.uniqueResult();
		});
	}

	public static void main(String[] arguments) throws Exception
	{
		SessionFactory factory = configuration(ENTITIES).buildSessionFactory();
		SessionFactory withoutKeys = configuration(ENTITIES).setProperty("hibernate.jdbc.use_get_generated_keys", "false")
			.buildSessionFactory();

		is("a generator, bigint", true, () -> areNewIds(save(factory, new Photo()), 1));
		is("a generator, instaid.id", true, () -> areNewIds(save(factory, new Comment()), 1));
		is("IDENTITY, by RETURNING", true, () -> areNewIds(save(factory, new IdentityPhoto()), 1));
		fails("IDENTITY with use_get_generated_keys=false", "photos_id_seq", () -> save(withoutKeys, new IdentityPhoto()));
		is("known: SEQUENCE stores a tick, and not an ID of the shard", false,
			() -> areNewIds(save(factory, new SequencePhoto()), 1));

		is("a batch, in order", true, () -> {
			List<Long> ids = transaction(factory, session -> {
				List<Long> all = new ArrayList<>();
				for (int i = 0; i < 500; i++)
				{
					Photo photo = new Photo();
					photo.caption = "caption " + i;
					all.add((Long) session.save(photo));
				}
				return all;
			});
			List<String> captions = transaction(factory, session ->
				session.createQuery("SELECT caption FROM Photo WHERE caption LIKE 'caption %' ORDER BY id").list());
			return areNewIds(ids, 500) && captions.size() == 500 && captions.get(499).equals("caption 499");
		});
		is("a StatelessSession", true, () -> {
			StatelessSession session = factory.openStatelessSession();
			session.beginTransaction();
			List<Long> ids = new ArrayList<>();
			for (int i = 0; i < 100; i++)
				ids.add((Long) session.insert(new Comment()));
			session.getTransaction().commit();
			session.close();
			return areNewIds(ids, 100);
		});

		for (long id : new long[] { BIG, Long.MAX_VALUE, Long.MIN_VALUE, 1 })
		{
			is("64 bits, and IDs brought along: " + id, List.of(id, id), () -> {
				save(factory, new AssignedPhoto(id));
				save(factory, new AssignedComment(id, id));
				return List.of(transaction(factory, session -> ((Photo) session.get(Photo.class, id)).id),
					transaction(factory, session -> ((Comment) session.get(Comment.class, id)).photo.id));
			});
			for (String entity : new String[] { "Photo", "Comment" })
				is("a parameter, and a list, " + entity + ": " + id, 1L,
					() -> query(factory, "SELECT count(*) FROM " + entity + " WHERE id = :p0 AND id IN (:p1)", id, List.of(id, 7L)));
		}

		try (Connection connection = DriverManager.getConnection(URL, USER, PASSWORD))
		{
			DatabaseMetadata schema = new DatabaseMetadata(connection, DIALECT);
			is("validation, bigint", null, () -> {
				configuration(Photo.class).validateSchema(DIALECT, schema);
				return null;
			});
			fails("validation, instaid.id", "Found: \"instaid\".\"id\", expected: int8", () -> {
				configuration(Photo.class, Comment.class).validateSchema(DIALECT, schema);
				return null;
			});
			is("a migration finds no difference", List.of(),
				() -> List.of(configuration(Photo.class, Comment.class).generateSchemaUpdateScript(DIALECT, schema)));
		}

		is("a transaction that rolls back", null, () -> {
			Session session = factory.openSession();
			session.beginTransaction();
			Long id = (Long) session.save(new Photo());
			session.flush();
			session.getTransaction().rollback();
			session.close();
			return transaction(factory, other -> other.get(Photo.class, id));
		});
		is("a prepared statement, twenty times", Collections.nCopies(20, BIG), () -> transaction(factory, session -> {
			List<Long> found = new ArrayList<>();
			for (int i = 0; i < 20; i++)
			{
				session.clear();
				found.add(((Comment) session.get(Comment.class, BIG)).id);
			}
			return found;
		}));
		done();
	}
}
