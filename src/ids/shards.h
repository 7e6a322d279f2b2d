/*-------------------------------------------------------------------------
 *
 * shards.h
 *	  The language instaid: see shards.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_SHARDS_H
#define INSTAID_SHARDS_H

extern void shards_init(void);

#endif							/* INSTAID_SHARDS_H */
