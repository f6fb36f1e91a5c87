#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl/net.h"

// What NCCL reads of a network plugin, byte for byte, in the five versions that we export. Layouts are those of LP64,
// little-endian. Source: NCCL's headers plugin/net/net_v8.h to
// net_v12.h, releases 2.20 to 2.30. NCCL's structs are flat; what several versions share is a struct of its own here,
// whose size leaves no gap behind it.

namespace ringbolt::nccl::abi {

/// As wide as C's enum of the same name; nccl::Result has the values that a plugin may return.
using ncclResult_t = int;

/// Of v10 and later; may be null, and we report no events.
// The names and the order of members are NCCL's to choose: each offset below was read from its headers, and a
// compiler that lays them out otherwise does not get past the static_asserts.
using Profiler = ncclResult_t (*)(void** event, int type, void* parent, int64_t plugin, void* detail);

// ---- Properties

// guid: of the card, not of its port: NCCL takes devices that have the same one for one card. memory_types: a mask of
// NCCL_PTR_*. Pointers stay NCCL's to read until the process ends; `pci_path` may be null.
struct Identity {
  const char* name;
  const char* pci_path;
  uint64_t guid;
  int memory_types;
  int registration_is_global;
};
static_assert(sizeof(Identity) == 32 && offsetof(Identity, name) == 0 && offsetof(Identity, pci_path) == 8);
static_assert(offsetof(Identity, guid) == 16 && offsetof(Identity, memory_types) == 24);
static_assert(offsetof(Identity, registration_is_global) == 28);

// speed_mbps: 10^6 bits a second. device_type, device_version: of NCCL's fused devices; 0 the host's. latency_us: of
// one way. max_comms: how many NCCL may open. max_receives: most buffers of one irecv.
struct Abilities {
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
};
static_assert(sizeof(Abilities) == 28 && offsetof(Abilities, speed_mbps) == 0 && offsetof(Abilities, port) == 4);
static_assert(offsetof(Abilities, latency_us) == 8 && offsetof(Abilities, max_comms) == 12);
static_assert(offsetof(Abilities, max_receives) == 16 && offsetof(Abilities, device_type) == 20);
static_assert(offsetof(Abilities, device_version) == 24);

// Bytes of a point-to-point message, and of one collective operation.
struct Limits {
  size_t message_bytes;
  size_t collective_bytes;
};
static_assert(sizeof(Limits) == 16 && offsetof(Limits, message_bytes) == 0 && offsetof(Limits, collective_bytes) == 8);

/// Lies inside the properties: behind a pointer NCCL would read garbage [10]. Names the devices that a virtual one
/// bundles; ours are none, with a count of 1 and the device itself.
template <size_t kMost>
struct VirtualDevice {
  int count;
  int devices[kMost];
};
using VirtualDeviceV9 = VirtualDevice<4>;
using VirtualDeviceV12 = VirtualDevice<8>;
static_assert(sizeof(VirtualDeviceV9) == 20 && offsetof(VirtualDeviceV9, devices) == 4);
static_assert(sizeof(VirtualDeviceV12) == 36 && offsetof(VirtualDeviceV12, devices) == 4);

struct PropertiesV8 {
  Identity identity;
  Abilities abilities;
};
static_assert(sizeof(PropertiesV8) == 64 && offsetof(PropertiesV8, identity) == 0);
static_assert(offsetof(PropertiesV8, abilities) == 32);

// force_flush: 1 makes NCCL call iflush() after receives; we receive into host memory alone, and need none.
struct PropertiesV9 {  // of v10 too
  Identity identity;
  int force_flush;
  Abilities abilities;
  VirtualDeviceV9 virtual_device;
  Limits limits;
};
static_assert(sizeof(PropertiesV9) == 104 && offsetof(PropertiesV9, identity) == 0);
static_assert(offsetof(PropertiesV9, force_flush) == 32 && offsetof(PropertiesV9, abilities) == 36);
static_assert(offsetof(PropertiesV9, virtual_device) == 64 && offsetof(PropertiesV9, limits) == 88);

// max_multi_request: how many requests NCCL may put into one.
struct PropertiesV11 {
  Identity identity;
  int force_flush;
  Abilities abilities;
  VirtualDeviceV9 virtual_device;
  Limits limits;
  int max_multi_request;
};
static_assert(sizeof(PropertiesV11) == 112 && offsetof(PropertiesV11, identity) == 0);
static_assert(offsetof(PropertiesV11, force_flush) == 32 && offsetof(PropertiesV11, abilities) == 36);
static_assert(offsetof(PropertiesV11, virtual_device) == 64 && offsetof(PropertiesV11, limits) == 88);
static_assert(offsetof(PropertiesV11, max_multi_request) == 104);

// rail, plane: which of several networks a device belongs to.
struct PropertiesV12 {
  Identity identity;
  int force_flush;
  Abilities abilities;
  VirtualDeviceV12 virtual_device;
  Limits limits;
  int max_multi_request;
  int16_t rail;
  int16_t plane;
};
static_assert(sizeof(PropertiesV12) == 128 && offsetof(PropertiesV12, identity) == 0);
static_assert(offsetof(PropertiesV12, force_flush) == 32 && offsetof(PropertiesV12, abilities) == 36);
static_assert(offsetof(PropertiesV12, virtual_device) == 64 && offsetof(PropertiesV12, limits) == 104);
static_assert(offsetof(PropertiesV12, max_multi_request) == 120 && offsetof(PropertiesV12, rail) == 124);
static_assert(offsetof(PropertiesV12, plane) == 126);

// ---- Small structs that NCCL passes. We read none of them.

// Lives as long as the call that it is passed to, as do all structs of this part.
struct CommConfig {  // v10 and later
  int traffic_class;
};
static_assert(sizeof(CommConfig) == 4);

struct DeviceHandle {
  int device_type;
  int device_version;
  void* handle;
  size_t size;
  int needs_proxy_progress;
};
static_assert(sizeof(DeviceHandle) == 32 && offsetof(DeviceHandle, device_type) == 0);
static_assert(offsetof(DeviceHandle, device_version) == 4 && offsetof(DeviceHandle, handle) == 8);
static_assert(offsetof(DeviceHandle, size) == 16 && offsetof(DeviceHandle, needs_proxy_progress) == 24);

// Hints of how many peers will be talked to at once.
struct PeerCounts {
  int most_peers;
  int least_peers;
  int most_flows;   // of a peer
  int least_flows;  // likewise
};
static_assert(sizeof(PeerCounts) == 16 && offsetof(PeerCounts, most_peers) == 0);
static_assert(offsetof(PeerCounts, least_peers) == 4 && offsetof(PeerCounts, most_flows) == 8);
static_assert(offsetof(PeerCounts, least_flows) == 12);

struct NetAttributes {  // v11 and later
  PeerCounts send;
  PeerCounts receive;
  uint32_t operations;  // bit masks; all ones: not known
  uint32_t algorithms;
  uint32_t protocols;
};
static_assert(sizeof(NetAttributes) == 44 && offsetof(NetAttributes, send) == 0);
static_assert(offsetof(NetAttributes, receive) == 16 && offsetof(NetAttributes, operations) == 32);
static_assert(offsetof(NetAttributes, algorithms) == 36 && offsetof(NetAttributes, protocols) == 40);

// ---- Tables of functions

/// Alike in all versions, as are the calls of the next struct. A call returns at once with `success` and a null
/// output when the other end is not there yet: NCCL asks again (net.h).
struct SetupCalls {
  ncclResult_t (*accept)(void* listen_comm, void** receive_comm, DeviceHandle** device_handle);
  ncclResult_t (*register_memory)(void* comm, void* data, size_t size, int type, void** registration);
  ncclResult_t (*register_dma_buf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                                   void** registration);
  ncclResult_t (*deregister_memory)(void* comm, void* registration);
};
static_assert(sizeof(SetupCalls) == 32 && offsetof(SetupCalls, accept) == 0);
static_assert(offsetof(SetupCalls, register_memory) == 8 && offsetof(SetupCalls, register_dma_buf) == 16);
static_assert(offsetof(SetupCalls, deregister_memory) == 24);

/// `sizes` of test() are filled when a request is done: [n] of a receive, of a send one or null.
struct EndingCalls {
  ncclResult_t (*iflush)(void* comm, int n, void** data, int* sizes, void** registrations, void** request);
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  ncclResult_t (*close_send)(void* comm);
  ncclResult_t (*close_receive)(void* comm);
  ncclResult_t (*close_listen)(void* comm);
  ncclResult_t (*device_registration)(void* comm, void* registration, void** device_registration);  // null: none
  ncclResult_t (*receive_consumed)(void* comm, int n, void* request);                               // null: not asked
};
static_assert(sizeof(EndingCalls) == 56 && offsetof(EndingCalls, iflush) == 0 && offsetof(EndingCalls, test) == 8);
static_assert(offsetof(EndingCalls, close_send) == 16 && offsetof(EndingCalls, close_receive) == 24);
static_assert(offsetof(EndingCalls, close_listen) == 32 && offsetof(EndingCalls, device_registration) == 40);
static_assert(offsetof(EndingCalls, receive_consumed) == 48);

// One table for each version, filled in net_tables.cpp: constants, which NCCL reads from several threads.
struct NetV8 {
  const char* name;
  ncclResult_t (*init)(Logger logger);
  ncclResult_t (*devices)(int* n);
  ncclResult_t (*properties)(int device, PropertiesV8* properties);
  ncclResult_t (*listen)(int device, void* handle, void** listen_comm);
  ncclResult_t (*connect)(int device, void* handle, void** send_comm, DeviceHandle** device_handle);
  SetupCalls setup;
  ncclResult_t (*isend)(void* comm, void* data, int size, int tag, void* registration, void** request);
  ncclResult_t (*irecv)(void* comm, int n, void** data, int* sizes, int* tags, void** registrations, void** request);
  EndingCalls ending;
};

struct NetV9 {  // wider sizes
  const char* name;
  ncclResult_t (*init)(Logger logger);
  ncclResult_t (*devices)(int* n);
  ncclResult_t (*properties)(int device, PropertiesV9* properties);
  ncclResult_t (*listen)(int device, void* handle, void** listen_comm);
  ncclResult_t (*connect)(int device, void* handle, void** send_comm, DeviceHandle** device_handle);
  SetupCalls setup;
  ncclResult_t (*isend)(void* comm, void* data, size_t size, int tag, void* registration, void** request);
  ncclResult_t (*irecv)(void* comm, int n, void** data, size_t* sizes, int* tags, void** registrations, void** request);
  EndingCalls ending;
  ncclResult_t (*make_virtual_device)(int* device, VirtualDeviceV9* members);
};

struct NetV10 {  // traffic class and profiler
  const char* name;
  ncclResult_t (*init)(Logger logger, Profiler profiler);
  ncclResult_t (*devices)(int* n);
  ncclResult_t (*properties)(int device, PropertiesV9* properties);
  ncclResult_t (*listen)(int device, void* handle, void** listen_comm);
  ncclResult_t (*connect)(int device, CommConfig* config, void* handle, void** send_comm, DeviceHandle** device_handle);
  SetupCalls setup;
  ncclResult_t (*isend)(void* comm, void* data, size_t size, int tag, void* registration, void* profile,
                        void** request);
  ncclResult_t (*irecv)(void* comm, int n, void** data, size_t* sizes, int* tags, void** registrations, void** profiles,
                        void** request);
  EndingCalls ending;
  ncclResult_t (*make_virtual_device)(int* device, VirtualDeviceV9* members);
};

/// v11 gave each communicator a context, and took the configuration from connect; v12 changed the properties alone.
template <class Properties, class Members>
struct NetWithContext {
  const char* name;
  ncclResult_t (*init)(void** context, uint64_t comm_id, CommConfig* config, Logger logger, Profiler profiler);
  ncclResult_t (*devices)(int* n);
  ncclResult_t (*properties)(int device, Properties* properties);
  ncclResult_t (*listen)(void* context, int device, void* handle, void** listen_comm);
  ncclResult_t (*connect)(void* context, int device, void* handle, void** send_comm, DeviceHandle** device_handle);
  SetupCalls setup;
  ncclResult_t (*isend)(void* comm, void* data, size_t size, int tag, void* registration, void* profile,
                        void** request);
  ncclResult_t (*irecv)(void* comm, int n, void** data, size_t* sizes, int* tags, void** registrations, void** profiles,
                        void** request);
  EndingCalls ending;
  ncclResult_t (*make_virtual_device)(int* device, Members* members);
  ncclResult_t (*finalize)(void* context);  // never null
  ncclResult_t (*set_attributes)(void* context, NetAttributes* attributes);
};
using NetV11 = NetWithContext<PropertiesV11, VirtualDeviceV9>;
using NetV12 = NetWithContext<PropertiesV12, VirtualDeviceV12>;

// What all versions share is at the same offsets in all of them: members are in NCCL's order, not in one of ours.
template <class Table>
inline constexpr bool kBeginsRight = offsetof(Table, name) == 0 && offsetof(Table, init) == 8 &&
                                     offsetof(Table, devices) == 16 && offsetof(Table, properties) == 24 &&
                                     offsetof(Table, listen) == 32 && offsetof(Table, connect) == 40 &&
                                     offsetof(Table, setup) == 48 && offsetof(Table, isend) == 80 &&
                                     offsetof(Table, irecv) == 88 && offsetof(Table, ending) == 96;
static_assert(sizeof(NetV8) == 152 && kBeginsRight<NetV8>);
static_assert(sizeof(NetV9) == 160 && kBeginsRight<NetV9> && offsetof(NetV9, make_virtual_device) == 152);
static_assert(sizeof(NetV10) == 160 && kBeginsRight<NetV10> && offsetof(NetV10, make_virtual_device) == 152);
static_assert(sizeof(NetV11) == 176 && kBeginsRight<NetV11> && offsetof(NetV11, make_virtual_device) == 152);
static_assert(offsetof(NetV11, finalize) == 160 && offsetof(NetV11, set_attributes) == 168);
static_assert(sizeof(NetV12) == 176 && kBeginsRight<NetV12> && offsetof(NetV12, make_virtual_device) == 152);
static_assert(offsetof(NetV12, finalize) == 160 && offsetof(NetV12, set_attributes) == 168);

// What NCCL looks up, newest first: the objects themselves, neither pointers nor functions.
extern "C" {
__attribute__((visibility("default"))) extern const NetV8 ncclNetPlugin_v8;
__attribute__((visibility("default"))) extern const NetV9 ncclNetPlugin_v9;
__attribute__((visibility("default"))) extern const NetV10 ncclNetPlugin_v10;
__attribute__((visibility("default"))) extern const NetV11 ncclNetPlugin_v11;
__attribute__((visibility("default"))) extern const NetV12 ncclNetPlugin_v12;
}

}  // namespace ringbolt::nccl::abi
