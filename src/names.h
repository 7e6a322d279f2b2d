/* Checks of the names of objects that callers pass. */
#ifndef INSTAID_NAMES_H
#define INSTAID_NAMES_H

extern void check_object_name(const char *what, const char *name);

#endif							/* INSTAID_NAMES_H */
