#include <array>
#include <cstring>

#include "nccl/net_abi.h"

// The tables of all versions, over the one core of net.h. Numbers in brackets: sections of the reference (net_abi.h).
// Handles of devices and of profilers are left as they are: we are a device of the host, and report no events.
// Hot path: isend, irecv and test are called for every message.

namespace ringbolt::nccl {
namespace {

constexpr const char* kPluginName = "Ringbolt";           // NCCL_NET= selects by it, so it is nobody else's
constexpr size_t kMostMessageBytes = size_t{1} << 30;     // what NCCL takes for v8's limits too
constexpr size_t kMostCollectiveBytes = size_t{1} << 29;  // likewise

namespace slot {

int code(Result result) { return static_cast<int>(result); }

// v10 and older know no context, and are never finalized.
int init_v8(Logger logger) noexcept { return code(init(nullptr, 0, logger)); }
int init_v10(Logger logger, abi::Profiler) noexcept { return code(init(nullptr, 0, logger)); }
int init_v11(void** context, uint64_t comm_id, abi::CommConfig*, Logger logger, abi::Profiler) noexcept {
  return code(init(context, comm_id, logger));
}
int finalize(void* context) noexcept { return code(nccl::finalize(context)); }

int devices(int* n) noexcept { return code(nccl::devices(n)); }

template <class P>
int properties(int device, P* out) noexcept {
  Properties known;
  if (const Result result = nccl::properties(device, known); result != Result::success) return code(result);
  std::memset(out, 0, sizeof *out);  // the padding too: no byte stays as it was
  out->identity = {known.name, known.pci_path, known.guid, known.memory_types, known.registration_is_global};
  out->abilities.speed_mbps = known.speed_mbps;
  out->abilities.port = known.port;
  out->abilities.latency_us = known.latency_us;
  out->abilities.max_comms = known.max_comms;
  out->abilities.max_receives = known.max_receives;  // type and version of the device: 0, the host's
  if constexpr (requires { out->virtual_device; }) {
    // A device that is merged of itself alone, as NCCL's own plugins report one that is not merged.
    out->virtual_device.count = 1;
    out->virtual_device.devices[0] = device;
    out->limits = {kMostMessageBytes, kMostCollectiveBytes};
  }
  if constexpr (requires { out->max_multi_request; }) out->max_multi_request = 1;
  if constexpr (requires { out->rail; }) {
    // Numbers that differ forbid a ring to enter by one device and leave by another, as a cabled ring does.
    out->rail = -1;
    out->plane = -1;
  }
  return code(Result::success);
}

int listen_v8(int device, void* handle, void** listen_comm) noexcept {
  return code(listen(nullptr, device, handle, listen_comm));
}
int listen_v11(void* context, int device, void* handle, void** listen_comm) noexcept {
  return code(listen(context, device, handle, listen_comm));
}

int connect_v8(int device, void* handle, void** send_comm, abi::DeviceHandle**) noexcept {
  return code(connect(nullptr, device, handle, send_comm));
}
int connect_v10(int device, abi::CommConfig*, void* handle, void** send_comm, abi::DeviceHandle**) noexcept {
  return code(connect(nullptr, device, handle, send_comm));
}
int connect_v11(void* context, int device, void* handle, void** send_comm, abi::DeviceHandle**) noexcept {
  return code(connect(context, device, handle, send_comm));
}

int accept(void* listen_comm, void** receive_comm, abi::DeviceHandle**) noexcept {
  return code(nccl::accept(listen_comm, receive_comm));
}

int register_memory(void* comm, void* data, size_t size, int type, void** registration) noexcept {
  return code(nccl::register_memory(comm, data, size, type, registration));
}
/// A device's address must never be taken for the host's, and NCCL closes the descriptor: all that is left is no.
int register_dma_buf(void*, void*, size_t, int, uint64_t, int, void**) noexcept {
  return code(Result::invalid_argument);
}
int deregister_memory(void* comm, void* registration) noexcept {
  // NCCL also deregisters what was never registered.
  if (registration == nullptr) return code(Result::success);
  return code(nccl::deregister_memory(comm, registration));
}

int isend_v8(void* comm, void* data, int size, int tag, void* registration, void** request) noexcept {
  // v8's sizes are ints: what overflowed on its way must not become 2^64 bytes.
  if (size < 0) return code(Result::invalid_usage);
  return code(isend(comm, data, static_cast<size_t>(size), tag, registration, request));
}
int isend_v9(void* comm, void* data, size_t size, int tag, void* registration, void** request) noexcept {
  return code(isend(comm, data, size, tag, registration, request));
}
int isend_v10(void* comm, void* data, size_t size, int tag, void* registration, void*, void** request) noexcept {
  return code(isend(comm, data, size, tag, registration, request));
}

/// On entry `*request` may be the marker 0x1, which NCCL would take for a request if it stayed: after an error too.
int irecv_v9(void* comm, int n, void** data, size_t* sizes, int* tags, void** registrations, void** request) noexcept {
  *request = nullptr;
  return code(irecv(comm, n, data, sizes, tags, registrations, request));
}
int irecv_v8(void* comm, int n, void** data, int* sizes, int* tags, void** registrations, void** request) noexcept {
  *request = nullptr;
  std::array<size_t, kMostReceives> wide{};
  for (int i = 0; n <= kMostReceives && i < n; ++i) {  // more than there may be: irecv refuses them, sizes unread
    if (sizes[i] < 0) return code(Result::invalid_usage);
    wide[static_cast<size_t>(i)] = static_cast<size_t>(sizes[i]);
  }
  return code(irecv(comm, n, data, wide.data(), tags, registrations, request));
}
int irecv_v10(void* comm, int n, void** data, size_t* sizes, int* tags, void** registrations, void**,
              void** request) noexcept {
  *request = nullptr;
  return code(irecv(comm, n, data, sizes, tags, registrations, request));
}

/// Of buffers on a GPU alone, which we register none of: nothing to wait for.
int iflush(void*, int, void**, int*, void**, void** request) noexcept {
  *request = nullptr;
  return code(Result::success);
}
int test(void* request, int* done, int* sizes) noexcept { return code(nccl::test(request, done, sizes)); }

int close_send(void* comm) noexcept { return code(nccl::close_send(comm)); }
int close_receive(void* comm) noexcept { return code(nccl::close_receive(comm)); }
int close_listen(void* comm) noexcept { return code(nccl::close_listen(comm)); }

constexpr abi::SetupCalls kSetup = {.accept = accept,
                                    .register_memory = register_memory,
                                    .register_dma_buf = register_dma_buf,
                                    .deregister_memory = deregister_memory};

constexpr abi::EndingCalls kEnding = {.iflush = iflush,
                                      .test = test,
                                      .close_send = close_send,
                                      .close_receive = close_receive,
                                      .close_listen = close_listen,
                                      .device_registration = nullptr,
                                      .receive_consumed = nullptr};

}  // namespace slot

// Null: we offer no fused devices (one that always fails only makes noise), and hints of attributes change nothing.
template <class Table>
constexpr Table table_with_context() {
  return {.name = kPluginName,
          .init = slot::init_v11,
          .devices = slot::devices,
          .properties = slot::properties,
          .listen = slot::listen_v11,
          .connect = slot::connect_v11,
          .setup = slot::kSetup,
          .isend = slot::isend_v10,
          .irecv = slot::irecv_v10,
          .ending = slot::kEnding,
          .make_virtual_device = nullptr,
          .finalize = slot::finalize,
          .set_attributes = nullptr};
}

}  // namespace

// External by the header's word; constinit: NCCL may look at them before anything of ours has run.
namespace abi {

constinit const NetV8 ncclNetPlugin_v8 = {.name = kPluginName,
                                          .init = slot::init_v8,
                                          .devices = slot::devices,
                                          .properties = slot::properties,
                                          .listen = slot::listen_v8,
                                          .connect = slot::connect_v8,
                                          .setup = slot::kSetup,
                                          .isend = slot::isend_v8,
                                          .irecv = slot::irecv_v8,
                                          .ending = slot::kEnding};

constinit const NetV9 ncclNetPlugin_v9 = {.name = kPluginName,
                                          .init = slot::init_v8,
                                          .devices = slot::devices,
                                          .properties = slot::properties,
                                          .listen = slot::listen_v8,
                                          .connect = slot::connect_v8,
                                          .setup = slot::kSetup,
                                          .isend = slot::isend_v9,
                                          .irecv = slot::irecv_v9,
                                          .ending = slot::kEnding,
                                          .make_virtual_device = nullptr};

constinit const NetV10 ncclNetPlugin_v10 = {.name = kPluginName,
                                            .init = slot::init_v10,
                                            .devices = slot::devices,
                                            .properties = slot::properties,
                                            .listen = slot::listen_v8,
                                            .connect = slot::connect_v10,
                                            .setup = slot::kSetup,
                                            .isend = slot::isend_v10,
                                            .irecv = slot::irecv_v10,
                                            .ending = slot::kEnding,
                                            .make_virtual_device = nullptr};

constinit const NetV11 ncclNetPlugin_v11 = table_with_context<NetV11>();
constinit const NetV12 ncclNetPlugin_v12 = table_with_context<NetV12>();

}  // namespace abi
}  // namespace ringbolt::nccl
