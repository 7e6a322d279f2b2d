import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.util.*;
import java.util.function.Function;
import javax.persistence.*;

@Entity
@Table(name = "photos", schema = "insta5")
class Photo
{
	// recipe: entity
	@Id
	@GeneratedValue(generator = "insta5")
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
	@Id
	@GeneratedValue(strategy = GenerationType.IDENTITY)
	Long id;
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
}

@Entity
@Table(name = "comments", schema = "insta5")
class AssignedComment
{
	@Id
	Long id;
	@Column(name = "photo_id")
	Long photo;
}

/** EclipseLink */
class Trial extends Tap
{
	static EntityManagerFactory factory(String ddl)
	{
		// EclipseLink would decrypt a password of hexadecimal digits
		return Persistence.createEntityManagerFactory("trial", Map.of(
			"javax.persistence.jdbc.driver", "org.postgresql.Driver",
			"javax.persistence.jdbc.url",
			URL + "?user=" + USER + "&password=" + PASSWORD + (POOLED ? "&prepareThreshold=0" : ""),
			"eclipselink.ddl-generation", ddl));
	}

	static EntityManagerFactory factory = factory("none");

	/** Do some work in a transaction. */
	static <T> T transaction(Function<EntityManager, T> work)
	{
		EntityManager manager = factory.createEntityManager();
		try
		{
			manager.getTransaction().begin();
			T result = work.apply(manager);
			manager.getTransaction().commit();
			return result;
		}
		finally
		{
			if (manager.getTransaction().isActive())
				manager.getTransaction().rollback();
			manager.close();
		}
	}

	static <T> T save(T entity)
	{
		return transaction(manager -> {
			manager.persist(entity);
			manager.flush();
			return entity;
		});
	}

	static AssignedPhoto assignedPhoto(long id)
	{
		AssignedPhoto photo = new AssignedPhoto();
		photo.id = id;
		return photo;
	}

	static AssignedComment assignedComment(long id)
	{
		AssignedComment comment = new AssignedComment();
		comment.id = comment.photo = id;
		return comment;
	}

	/** The columns of the tables, and their types and defaults. */
	static String columns() throws Exception
	{
		try (Connection connection = DriverManager.getConnection(URL, USER, PASSWORD))
		{
			ResultSet row = connection.createStatement().executeQuery(
				"SELECT string_agg(concat_ws(' ', table_name, column_name, udt_name, column_default), ', '"
				+ " ORDER BY table_name, ordinal_position)"
				+ " FROM information_schema.columns WHERE table_schema = 'insta5'");
			row.next();
			return row.getString(1);
		}
	}

	public static void main(String[] arguments) throws Exception
	{
		is("a generator, bigint", true, () -> areNewIds(List.of(save(new Photo()).id), 1));
		is("a generator, instaid.id", true, () -> areNewIds(List.of(save(new Comment()).id), 1));
		fails("IDENTITY", "lastval is not yet defined in this session", () -> save(new IdentityPhoto()));
		is("known: SEQUENCE stores a tick, and not an ID of the shard", false,
			() -> areNewIds(List.of(save(new SequencePhoto()).id), 1));

		is("a batch, in order", true, () -> {
			List<Photo> photos = new ArrayList<>();
			transaction(manager -> {
				for (int i = 0; i < 500; i++)
				{
					Photo photo = new Photo();
					photo.caption = "caption " + i;
					manager.persist(photo);
					photos.add(photo);
				}
				return null;
			});
			List<Long> ids = new ArrayList<>();
			for (Photo photo : photos)
				ids.add(photo.id);
			List<String> captions = transaction(manager -> manager.createQuery(
				"SELECT p.caption FROM Photo p WHERE p.caption LIKE 'caption %' ORDER BY p.id", String.class).getResultList());
			return areNewIds(ids, 500) && captions.size() == 500 && captions.get(499).equals("caption 499");
		});

		for (long id : new long[] { BIG, Long.MAX_VALUE, Long.MIN_VALUE, 1 })
		{
			is("64 bits, and IDs brought along: " + id, List.of(id, id), () -> {
				save(assignedPhoto(id));
				save(assignedComment(id));
				return transaction(manager -> List.of(manager.find(Photo.class, id).id, manager.find(Comment.class, id).photo.id));
			});
			for (String entity : new String[] { "Photo", "Comment" })
				is("a parameter, and a list, " + entity + ": " + id, 1L, () -> transaction(manager -> manager
					.createQuery("SELECT count(e) FROM " + entity + " e WHERE e.id = :id AND e.id IN :ids")
					.setParameter("id", id).setParameter("ids", List.of(id, 7L)).getSingleResult()));
		}

		is("a migration changes nothing", columns(), () -> {
			factory("create-or-extend-tables").createEntityManager().close();
			return columns();
		});
		is("a transaction that rolls back", null, () -> {
			EntityManager manager = factory.createEntityManager();
			manager.getTransaction().begin();
			Photo photo = new Photo();
			manager.persist(photo);
			manager.flush();
			manager.getTransaction().rollback();
			manager.close();
			return transaction(other -> other.find(Photo.class, photo.id));
		});
		is("a prepared statement, twenty times", Collections.nCopies(20, BIG), () -> transaction(manager -> {
			List<Long> found = new ArrayList<>();
			for (int i = 0; i < 20; i++)
				found.add((Long) manager.createNativeQuery("SELECT id::bigint FROM insta5.comments WHERE id = ?")
					.setParameter(1, BIG).getSingleResult());
			return found;
		}));
		done();
	}
}
