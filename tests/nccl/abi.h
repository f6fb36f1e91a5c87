#pragma once

#include <cstddef>
#include <cstdint>

/// The tables that a net plugin exports for NCCL, v8 to v12, as LP64 systems lay them out. Declared here once more,
/// from the description of the interface alone: what judges a plugin must not share its mistakes.
namespace ringbolt::test::abi {

inline constexpr int kOldestVersion = 8;
inline constexpr int kNewestVersion = 12;
inline constexpr size_t kHandleBytes = 128;
inline constexpr int kMostSizes = 64;     ///< entries of the array that test() gets for a receive
inline constexpr int kMostRequests = 32;  ///< receives that may be under way on one comm
inline constexpr int kHostMemory = 1;
inline constexpr int kCudaMemory = 2;
inline constexpr int kDmaBuf = 4;

// ncclResult_t: of these a plugin returns success and 2 to 6.
inline constexpr int kSuccess = 0;
inline constexpr int kSystemError = 2;
inline constexpr int kInternalError = 3;
inline constexpr int kInvalidArgument = 4;
inline constexpr int kInvalidUsage = 5;
inline constexpr int kRemoteError = 6;

using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);
using Profiler = int (*)(void** event, int type, void* parent, int64_t plugin, void* extra);

struct PropertiesV8 {
  const char* name;
  const char* pci_path;
  uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
};

/// v9 and v10.
struct PropertiesV9 {
  const char* name;
  const char* pci_path;
  uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
  int ndevs;
  int devs[4];
  size_t max_p2p_bytes;
  size_t max_coll_bytes;
};

struct PropertiesV11 {
  PropertiesV9 v9;
  int max_multi_request_size;
};

struct PropertiesV12 {
  const char* name;
  const char* pci_path;
  uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
  int ndevs;
  int devs[8];
  size_t max_p2p_bytes;
  size_t max_coll_bytes;
  int max_multi_request_size;
  int16_t rail_id;
  int16_t plane_id;
};

static_assert(sizeof(PropertiesV8) == 64 && offsetof(PropertiesV8, max_recvs) == 48);
static_assert(sizeof(PropertiesV9) == 104 && offsetof(PropertiesV9, max_recvs) == 52);
static_assert(offsetof(PropertiesV9, ndevs) == 64 && offsetof(PropertiesV9, max_p2p_bytes) == 88);
static_assert(sizeof(PropertiesV11) == 112 && offsetof(PropertiesV11, max_multi_request_size) == 104);
static_assert(sizeof(PropertiesV12) == 128 && offsetof(PropertiesV12, max_p2p_bytes) == 104);
static_assert(offsetof(PropertiesV12, max_multi_request_size) == 120 && offsetof(PropertiesV12, plane_id) == 126);

struct CommConfig {
  int traffic_class;
};
static_assert(sizeof(CommConfig) == 4);

struct TableV8 {
  const char* name;
  int (*init)(Logger);
  int (*devices)(int*);
  int (*get_properties)(int, void*);
  int (*listen)(int, void*, void**);
  int (*connect)(int, void*, void**, void**);
  int (*accept)(void*, void**, void**);
  int (*reg_mr)(void*, void*, size_t, int, void**);
  int (*reg_mr_dma_buf)(void*, void*, size_t, int, uint64_t, int, void**);
  int (*dereg_mr)(void*, void*);
  int (*isend)(void*, void*, int, int, void*, void**);
  int (*irecv)(void*, int, void**, int*, int*, void**, void**);
  int (*iflush)(void*, int, void**, int*, void**, void**);
  int (*test)(void*, int*, int*);
  int (*close_send)(void*);
  int (*close_recv)(void*);
  int (*close_listen)(void*);
  int (*get_device_mr)(void*, void*, void**);
  int (*irecv_consumed)(void*, int, void*);
};

struct TableV9 {
  const char* name;
  int (*init)(Logger);
  int (*devices)(int*);
  int (*get_properties)(int, void*);
  int (*listen)(int, void*, void**);
  int (*connect)(int, void*, void**, void**);
  int (*accept)(void*, void**, void**);
  int (*reg_mr)(void*, void*, size_t, int, void**);
  int (*reg_mr_dma_buf)(void*, void*, size_t, int, uint64_t, int, void**);
  int (*dereg_mr)(void*, void*);
  int (*isend)(void*, void*, size_t, int, void*, void**);
  int (*irecv)(void*, int, void**, size_t*, int*, void**, void**);
  int (*iflush)(void*, int, void**, int*, void**, void**);
  int (*test)(void*, int*, int*);
  int (*close_send)(void*);
  int (*close_recv)(void*);
  int (*close_listen)(void*);
  int (*get_device_mr)(void*, void*, void**);
  int (*irecv_consumed)(void*, int, void*);
  int (*make_v_device)(int*, void*);
};

struct TableV10 {
  const char* name;
  int (*init)(Logger, Profiler);
  int (*devices)(int*);
  int (*get_properties)(int, void*);
  int (*listen)(int, void*, void**);
  int (*connect)(int, CommConfig*, void*, void**, void**);
  int (*accept)(void*, void**, void**);
  int (*reg_mr)(void*, void*, size_t, int, void**);
  int (*reg_mr_dma_buf)(void*, void*, size_t, int, uint64_t, int, void**);
  int (*dereg_mr)(void*, void*);
  int (*isend)(void*, void*, size_t, int, void*, void*, void**);
  int (*irecv)(void*, int, void**, size_t*, int*, void**, void**, void**);
  int (*iflush)(void*, int, void**, int*, void**, void**);
  int (*test)(void*, int*, int*);
  int (*close_send)(void*);
  int (*close_recv)(void*);
  int (*close_listen)(void*);
  int (*get_device_mr)(void*, void*, void**);
  int (*irecv_consumed)(void*, int, void*);
  int (*make_v_device)(int*, void*);
};

/// v11 and v12, which differ in their properties only.
struct TableV11 {
  const char* name;
  int (*init)(void**, uint64_t, CommConfig*, Logger, Profiler);
  int (*devices)(int*);
  int (*get_properties)(int, void*);
  int (*listen)(void*, int, void*, void**);
  int (*connect)(void*, int, void*, void**, void**);
  int (*accept)(void*, void**, void**);
  int (*reg_mr)(void*, void*, size_t, int, void**);
  int (*reg_mr_dma_buf)(void*, void*, size_t, int, uint64_t, int, void**);
  int (*dereg_mr)(void*, void*);
  int (*isend)(void*, void*, size_t, int, void*, void*, void**);
  int (*irecv)(void*, int, void**, size_t*, int*, void**, void**, void**);
  int (*iflush)(void*, int, void**, int*, void**, void**);
  int (*test)(void*, int*, int*);
  int (*close_send)(void*);
  int (*close_recv)(void*);
  int (*close_listen)(void*);
  int (*get_device_mr)(void*, void*, void**);
  int (*irecv_consumed)(void*, int, void*);
  int (*make_v_device)(int*, void*);
  int (*finalize)(void*);
  int (*set_net_attr)(void*, void*);
};

static_assert(sizeof(TableV8) == 152 && offsetof(TableV8, isend) == 80 && offsetof(TableV8, close_listen) == 128);
static_assert(sizeof(TableV9) == 160 && offsetof(TableV9, make_v_device) == 152);
static_assert(sizeof(TableV10) == 160 && offsetof(TableV10, test) == 104);
static_assert(sizeof(TableV11) == 176 && offsetof(TableV11, finalize) == 160);

}  // namespace ringbolt::test::abi
