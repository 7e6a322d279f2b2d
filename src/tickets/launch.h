/*-------------------------------------------------------------------------
 *
 * launch.h
 *	  The background workers that refill tickets, one for each database: see
 *	  launch.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_LAUNCH_H
#define INSTAID_LAUNCH_H

/* if a worker has not attached after this time, in ms, another one is launched */
#define WORKER_START_TIMEOUT	1000

/* for the server's start */
extern void launch_request_shmem(void);
extern void launch_startup_shmem(void);

/* for sessions */
extern bool launch_wake_worker(void);

/* for the worker */
extern bool launch_attach(void);
extern bool launch_detach(void);

#endif							/* INSTAID_LAUNCH_H */
