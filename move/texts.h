/* What pg_dump writes of both sides, compared: see texts.c.  No query and no connection. */
#ifndef MOVE_TEXTS_H
#define MOVE_TEXTS_H

extern int	compare_texts(const char *source, const char *target, bool is_same_version, bool lacks_indexes);
extern bool is_same_text(const char *source, const char *target);

#endif
