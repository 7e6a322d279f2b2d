/* The newest PostgreSQL's names and signatures, emulated for older servers. */
#ifndef INSTAID_COMPAT_H
#define INSTAID_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "instaid needs PostgreSQL 15 or later"
#endif

#include "commands/sequence.h"
#include "storage/proc.h"
#include "utils/rel.h"

/*
 * PostgreSQL 16 renamed the relfilenode to relfilelocator, and has one function for the privileges
 * on most kinds of objects.  Members of a role may lack the right to SET ROLE to it.  The macros
 * that read a varlena are not in postgres.h any more.
 */
#if PG_VERSION_NUM < 160000
#define RelFileLocator RelFileNode
#define RelFileLocatorEquals(a, b) RelFileNodeEquals(a, b)
#define rd_locator rd_node
#define rd_firstRelfilelocatorSubid rd_firstRelfilenodeSubid
#define XLogSequenceLocator(xlrec) ((xlrec).node)
#define RelFileLocatorDatabase(locator) ((locator).dbNode)
#define RelFileLocatorNumber(locator) ((locator).relNode)
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_namespace.h"
#define object_aclcheck(class_id, object_id, role, mode) \
	((class_id) == NamespaceRelationId ? pg_namespace_aclcheck(object_id, role, mode) : \
	 (class_id) == ForeignServerRelationId ? pg_foreign_server_aclcheck(object_id, role, mode) : \
	 pg_database_aclcheck(object_id, role, mode))
#define member_can_set_role(member, role) is_member_of_role(member, role)
#else
#define XLogSequenceLocator(xlrec) ((xlrec).locator)
#define RelFileLocatorDatabase(locator) ((locator).dbOid)
#define RelFileLocatorNumber(locator) ((locator).relNumber)
#include "varatt.h"
#endif

/*
 * PostgreSQL 17 gathered a backend's virtual transaction ID in one struct, and lets an extension
 * name what it waits for.
 */
#if PG_VERSION_NUM < 170000
#define PROC_LOCAL_XID(proc) ((proc)->lxid)
#define VirtualTransactionGetProc(vxid) BackendIdGetProc((vxid).backendId)
#include "storage/sinvaladt.h"
#define WaitEventExtensionNew(name) PG_WAIT_EXTENSION
#else
#define PROC_LOCAL_XID(proc) ((proc)->vxid.lxid)
#define VirtualTransactionGetProc(vxid) ProcNumberGetProc((vxid).procNumber)
#include "storage/procarray.h"
#endif
#define MyLocalTransactionId PROC_LOCAL_XID(MyProc)

/* PostgreSQL 18 marks functions that do not return by a word before them. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/*
 * PostgreSQL 19 published the format of a sequence's page, gave the system caches an enum, and ends
 * background workers with this flag that are in the way of DROP DATABASE.
 */
#if PG_VERSION_NUM < 190000
#define SEQ_MAGIC 0x1717
typedef struct sequence_magic
{
	uint32		magic;
} sequence_magic;
typedef int SysCacheIdentifier;
#define BGWORKER_INTERRUPTIBLE 0
#else
#include "commands/sequence_xlog.h"
#endif

#endif							/* INSTAID_COMPAT_H */
