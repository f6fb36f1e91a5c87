#pragma once

#include <infiniband/verbs.h>

#include <stdint.h>

/// The private interface between our librdmacm.so.1 and our libibverbs.so.1, exported at node RINGBOLT_PRIVATE_1. It
/// moves management datagrams (the messages of the connection manager) without saying how they travel, keeps the list
/// of services that processes of this host offer, and answers what only the device knows. Both libraries come from one
/// build; nobody else may use it.
///
/// All functions are thread-safe, never block for long, and may be called with any context of the process: contexts of
/// one process share one management. Functions that can fail return 0 or an errno value.
#ifdef __cplusplus
extern "C" {
#endif

enum ringbolt_notice_kind {
  RINGBOLT_NOTICE_MAD = 0,       ///< a datagram came
  RINGBOLT_NOTICE_PEER_GONE = 1  ///< the process of `peer_slot` ended, with or without a word
};

enum { RINGBOLT_NO_SLOT = 0xffffffff };

/// A datagram of 256 bytes with what its IP header says, or, received, another notice.
struct ringbolt_mad {
  uint32_t kind;           ///< received: ringbolt_notice_kind
  uint32_t peer_slot;      ///< received: the sender's slot if it is a process of this host, else RINGBOLT_NO_SLOT
  uint8_t source_gid[16];  ///< sent: a GID of the context's port
  uint8_t destination_gid[16];
  uint32_t flow_label;  ///< 20 bits; sent only
  uint8_t traffic_class;
  uint8_t hop_limit;  ///< sent only; 0: the usual one
  uint8_t reserved[2];
  uint8_t bytes[256];
};

/// A service id bound by this process: one listener, or one that may become one.
struct ringbolt_service {
  uint64_t token;  ///< the caller's number for it, unique in the process
  uint64_t service_id;
  uint8_t address[16];  ///< the local address it is bound to; ignored when is_any
  uint8_t is_any;       ///< bound to all addresses of the family
  uint8_t is_ipv4;      ///< of the wildcard; of the address otherwise
  uint8_t is_family_only;
  uint8_t is_reusable;  ///< SO_REUSEADDR's meaning: others may bind the same, until one listens
};

struct ringbolt_port_facts {
  uint64_t guid;          ///< host order
  uint32_t netdev_index;  ///< 0: the port lies in shared memory
  uint8_t is_up;
  uint8_t takes_any_local_address;  ///< the default device stands for every address of this host
  uint8_t mtu;                      ///< enum ibv_mtu
  uint8_t is_on_interface;          ///< of the kernel, whose addresses are its GIDs
  uint32_t gid_generation;          ///< another one after each change of the GID table
};

/// Starts receiving. Idempotent; before it, datagrams for this process are answered as for one without listeners.
int ringbolt_management_open(struct ibv_context* context);
/// Readable while ringbolt_management_receive() has something. Owned by the library.
int ringbolt_management_descriptor(struct ibv_context* context);
/// 1 and `*notice`, or 0 when nothing waits.
int ringbolt_management_receive(struct ibv_context* context, struct ringbolt_mad* notice);
/// Sends from the context's port. Datagrams may get lost: a cut cable, a full queue. ENETUNREACH: no way to that GID.
int ringbolt_management_send(struct ibv_context* context, const struct ringbolt_mad* mad);
/// A connection over a network, with all that another process of this host must know to end it should we be killed.
struct ringbolt_connection {
  uint32_t local_id;
  uint32_t remote_id;
  uint32_t remote_qpn;
  uint32_t flow_label;
  uint8_t local_gid[16];
  uint8_t remote_gid[16];
  uint8_t traffic_class;
  uint8_t hop_limit;
};

/// How many datagrams wait for room in another process' queue: call ringbolt_management_receive() again soon.
uint32_t ringbolt_management_unsent(struct ibv_context* context);
/// Bits 22 to 31 of every communication id of this process: who answers needs them to find us.
uint32_t ringbolt_management_slot(struct ibv_context* context);

/// It stands, from the context's port; it has ended, as its process will not. Nothing for peers on this host.
void ringbolt_management_remember(struct ibv_context* context, const struct ringbolt_connection* connection);
void ringbolt_management_forget(struct ibv_context* context, uint32_t local_id);

/// Binds a service id on this host. EADDRINUSE: that address has it; EADDRNOTAVAIL: a wildcard overlaps.
int ringbolt_management_bind(struct ibv_context* context, const struct ringbolt_service* service);
/// Requests for it come to this process from now on. Errors as bind: reuse ends where somebody listens.
int ringbolt_management_listen(struct ibv_context* context, uint64_t token);
void ringbolt_management_unbind(struct ibv_context* context, uint64_t token);

int ringbolt_management_port(struct ibv_context* context, struct ringbolt_port_facts* facts);
/// 1 if a queue pair of the context's port can connect to `gid`.
int ringbolt_management_reaches(struct ibv_context* context, const union ibv_gid* gid);

/// 1 while data that came for a queue pair of this process, or the word that its signaled sends have arrived, lies
/// unread: in a lane, or as completions that nobody has polled. By number: the program may destroy the queue pair at
/// any time. Where the number is that of a datagram queue pair, any connected queue pair of this process counts: UCX
/// names such a placeholder to the connection manager and connects others by itself. 0 for a number that nobody has.
int ringbolt_management_has_unread(struct ibv_context* context, uint32_t qp_num);
/// 1 while sends of the queue pair wait for the peer's answer, or for their turn.
int ringbolt_management_awaits_answers(struct ibv_context* context, uint32_t qp_num);
/// Puts what has come for the queue pair into its posted receives, and completes the sends that were answered, as an
/// adapter does whether anybody polls or not. Which queue pairs these are: see above.
void ringbolt_management_take_arrived(struct ibv_context* context, uint32_t qp_num);
/// 1 while posted sends wait for room: they were not executed yet.
int ringbolt_management_has_queued_sends(struct ibv_context* context, uint32_t qp_num);

/// The other way round: exported by our librdmacm.so.1, does nothing. By it our libibverbs.so.1 knows whose is loaded.
void ringbolt_rdmacm(void);

#ifdef __cplusplus
}
#endif
