#include "nccl/net_abi.h"

#include <array>
#include <climits>
#include <cstring>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

// The exported tables over a core that only notes what it is asked: this program is linked without the real one.

namespace ringbolt::nccl {
namespace {

struct Core {
  std::string call;        ///< the last one, with its arguments: "listen 0xc1 2 0xda"
  void* output = nullptr;  ///< what it is to put out
  Properties known;
  Result answer = Result::success;

  template <class... Arguments>
  Result note(const char* name, Arguments... arguments) {
    std::ostringstream text;
    text << name;
    ((text << ' ' << arguments), ...);
    call = text.str();
    return answer;
  }
};
Core core;

template <class T = void>
T* at(uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace

Result init(void** context, uint64_t comm_id, Logger logger) noexcept {
  return core.note("init", context, comm_id, logger != nullptr);
}
Result finalize(void* context) noexcept { return core.note("finalize", context); }
Result devices(int* n) noexcept {
  *n = 3;
  return core.note("devices");
}
Result properties(int device, Properties& properties) noexcept {
  properties = core.known;
  return core.note("properties", device);
}
Result listen(void* context, int device, void* handle, void** listen_comm) noexcept {
  *listen_comm = core.output;
  return core.note("listen", context, device, handle);
}
Result connect(void* context, int device, void* handle, void** send_comm) noexcept {
  *send_comm = core.output;
  return core.note("connect", context, device, handle);
}
Result accept(void* listen_comm, void** receive_comm) noexcept {
  *receive_comm = core.output;
  return core.note("accept", listen_comm);
}
Result register_memory(void* comm, void* data, size_t size, int type, void** registration) noexcept {
  *registration = core.output;
  return core.note("register", comm, data, size, type);
}
Result deregister_memory(void* comm, void* registration) noexcept {
  return core.note("deregister", comm, registration);
}
Result isend(void* comm, void* data, size_t size, int tag, void* registration, void** request) noexcept {
  *request = core.output;
  return core.note("isend", comm, data, size, tag, registration);
}
Result irecv(void* comm, int n, void** data, const size_t* sizes, const int* tags, void** registrations,
             void** request) noexcept {
  std::ostringstream members;
  for (int i = 0; n <= kMostReceives && i < n; ++i) {
    members << ' ' << data[i] << '/' << sizes[i] << '/' << tags[i] << '/' << registrations[i];
  }
  core.note("irecv", comm, std::to_string(n) + members.str());
  if (n < 1 || n > kMostReceives) return Result::invalid_usage;
  if (core.answer == Result::success) *request = core.output;
  return core.answer;
}
Result test(void* request, int* done, int* sizes) noexcept {
  *done = 1;
  return core.note("test", request, sizes);
}
Result close_send(void* comm) noexcept { return core.note("close_send", comm); }
Result close_receive(void* comm) noexcept { return core.note("close_receive", comm); }
Result close_listen(void* listen_comm) noexcept { return core.note("close_listen", listen_comm); }
void warn(const std::string&) noexcept {}

namespace {

/// Calls `f` with every table and its version, each time over a fresh core.
template <class F>
void with_each(F f) {
  const auto call = [&f](const auto& table, int version) {
    core = Core{};
    f(table, version);
  };
  call(abi::ncclNetPlugin_v8, 8);
  call(abi::ncclNetPlugin_v9, 9);
  call(abi::ncclNetPlugin_v10, 10);
  call(abi::ncclNetPlugin_v11, 11);
  call(abi::ncclNetPlugin_v12, 12);
}

// The reference's golden vectors; v10 has v9's.
const std::string kStart = "1111111111111111 2222222222222222 efcdab8967452301 0100000001000000 ";
const std::string kGoldenV8 = kStart + "400d030001000000 0000a04000000100 0100000000000000 0000000000000000 ";
const std::string kGoldenV9 = kStart +
                              "00000000400d0300 010000000000a040 0000010001000000 0000000000000000 "
                              "0100000002000000 0000000000000000 0000000000000000 0000004000000000 "
                              "0000002000000000 ";
const std::string kGoldenV11 = kGoldenV9 + "0100000000000000 ";
const std::string kGoldenV12UpToRails = kStart +
                                        "00000000400d0300 010000000000a040 0000010001000000 0000000000000000 "
                                        "0100000002000000 0000000000000000 0000000000000000 0000000000000000 "
                                        "0000000000000000 0000004000000000 0000002000000000 01000000";

std::string hex(const void* memory, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    const unsigned byte = static_cast<const unsigned char*>(memory)[i];
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
    if (i % 8 == 7) text += ' ';
  }
  return text;
}

template <class P>
std::string by_hand() {
  P p;
  std::memset(&p, 0, sizeof p);
  p.identity = {at<char>(0x1111111111111111), at<char>(0x2222222222222222), 0x0123456789abcdef, 1, 1};
  p.abilities = {200000, 1, 5.0F, 65536, 1, 0, 0};
  if constexpr (requires { p.limits; }) {
    p.virtual_device.count = 1;
    p.virtual_device.devices[0] = 2;
    p.limits = {size_t{1} << 30, size_t{1} << 29};
  }
  if constexpr (requires { p.max_multi_request; }) p.max_multi_request = 1;
  if constexpr (requires { p.rail; }) {
    p.rail = 3;
    p.plane = -1;
  }
  return hex(&p, sizeof p);
}

TEST(NetAbi, lays_out_properties_as_nccl_reads_them) {
  EXPECT_EQ(by_hand<abi::PropertiesV8>(), kGoldenV8);
  EXPECT_EQ(by_hand<abi::PropertiesV9>(), kGoldenV9);
  EXPECT_EQ(by_hand<abi::PropertiesV11>(), kGoldenV11);
  EXPECT_EQ(by_hand<abi::PropertiesV12>(), kGoldenV12UpToRails + "0300ffff ");
}

/// The bytes of the answer, asked into memory full of 0xa5; what lies behind them must stay.
template <class P>
std::string asked(int (*properties)(int, P*), int expected = 0) {
  alignas(8) std::array<unsigned char, 2 * sizeof(P)> memory;
  memory.fill(0xa5);
  EXPECT_EQ(properties(2, reinterpret_cast<P*>(memory.data())), expected);
  EXPECT_EQ(core.call, "properties 2");
  for (size_t i = sizeof(P); i < memory.size(); ++i) EXPECT_EQ(memory[i], 0xa5) << i;
  return hex(memory.data(), sizeof(P));
}

TEST(NetTables, answer_properties_to_the_byte_each_time) {
  core = Core{};
  core.known = {.name = at<char>(0x1111111111111111),
                .pci_path = at<char>(0x2222222222222222),
                .guid = 0x0123456789abcdef,
                .speed_mbps = 200000,
                .latency_us = 5.0F,
                .max_receives = 1};
  for (int times = 0; times < 2; ++times) {  // pointers included, which are to be stable
    EXPECT_EQ(asked(abi::ncclNetPlugin_v8.properties), kGoldenV8);
    EXPECT_EQ(asked(abi::ncclNetPlugin_v9.properties), kGoldenV9);
    EXPECT_EQ(asked(abi::ncclNetPlugin_v10.properties), kGoldenV9);
    EXPECT_EQ(asked(abi::ncclNetPlugin_v11.properties), kGoldenV11);
    EXPECT_EQ(asked(abi::ncclNetPlugin_v12.properties), kGoldenV12UpToRails + "ffffffff ");
  }
}

TEST(NetTables, put_every_property_into_its_own_field) {  // the golden vectors have five ones
  with_each([](const auto& table, int) {
    core.answer = Result::invalid_argument;
    EXPECT_EQ(asked(table.properties, 4).find_first_not_of("a5 "), std::string::npos);  // nothing on failure
    core.answer = Result::success;
    core.known = {"a", nullptr, 11, 12, 13, 14.0F, 15, 16, 17, 18};
    [&]<class P>(int (*properties)(int, P*)) {
      P p;
      ASSERT_EQ(properties(3, &p), 0);
      const auto& [name, pci_path, guid, memory_types, registration_is_global] = p.identity;
      EXPECT_EQ(std::tie(pci_path, guid, memory_types, registration_is_global), std::tuple(nullptr, 11U, 17, 18));
      EXPECT_STREQ(name, "a");
      const auto& [speed, port, latency, comms, receives, type, version] = p.abilities;
      EXPECT_EQ(std::tie(speed, port, latency, comms, receives, type, version),
                std::tuple(12, 13, 14.0F, 15, 16, 0, 0));
    }(table.properties);
  });
}

TEST(NetTables, fill_the_slots_that_nccl_asks_for) {
  with_each([](const auto& table, int version) {
    std::array<const void*, sizeof table / sizeof(void*)> slots;
    std::memcpy(slots.data(), &table, sizeof table);
    std::string filled;
    for (const void* slot : slots) filled += slot == nullptr ? '-' : 'x';
    const std::string alike = "xxxxxxxxxxxxxxxxx--";  // no getDeviceMr, no irecvConsumed
    EXPECT_EQ(filled, version == 8 ? alike : version <= 10 ? alike + "-" : alike + "-x-");
    EXPECT_STREQ(table.name, "Ringbolt");
  });
}

// ---- Calls: each argument reaches the core as it is, and NCCL gets the core's answer

/// "2 listen 0xc1 5 0xda": what a call returned, and what the core was asked meanwhile.
std::string said(int code) { return std::to_string(code) + " " + std::exchange(core.call, ""); }

void log(int, unsigned long, const char*, int, const char*, ...) {}

TEST(NetTables, pass_on_a_context_from_v11_on_and_none_before) {
  with_each([](const auto& table, int) {
    core.answer = Result::system_error;
    core.output = at(0x99);
    void* comm = nullptr;
    abi::DeviceHandle* kept = at<abi::DeviceHandle>(0x77);
    if constexpr (requires { table.finalize; }) {
      EXPECT_EQ(said(table.init(at<void*>(0xc0), 55, nullptr, log, nullptr)), "2 init 0xc0 55 1");
      EXPECT_EQ(said(table.listen(at(0xc1), 5, at(0xda), &comm)), "2 listen 0xc1 5 0xda");
      EXPECT_EQ(said(table.connect(at(0xc1), 6, at(0xdb), &comm, &kept)), "2 connect 0xc1 6 0xdb");
      EXPECT_EQ(said(table.finalize(at(0xc1))), "2 finalize 0xc1");
    } else if constexpr (requires { table.init(log, nullptr); }) {
      EXPECT_EQ(said(table.init(log, nullptr)), "2 init 0 0 1");
      EXPECT_EQ(said(table.listen(5, at(0xda), &comm)), "2 listen 0 5 0xda");
      EXPECT_EQ(said(table.connect(6, nullptr, at(0xdb), &comm, &kept)), "2 connect 0 6 0xdb");
    } else {
      EXPECT_EQ(said(table.init(log)), "2 init 0 0 1");
      EXPECT_EQ(said(table.listen(5, at(0xda), &comm)), "2 listen 0 5 0xda");
      EXPECT_EQ(said(table.connect(6, at(0xdb), &comm, &kept)), "2 connect 0 6 0xdb");
    }
    EXPECT_EQ(comm, at(0x99));
    EXPECT_EQ(kept, at<abi::DeviceHandle>(0x77));
  });
}

TEST(NetTables, accept_and_register_host_memory_alone) {
  with_each([](const auto& table, int) {
    void* out = nullptr;
    core.output = at(0x99);
    EXPECT_EQ(said(table.setup.accept(at(0xc2), &out, nullptr)), "0 accept 0xc2");
    EXPECT_EQ(out, at(0x99));
    EXPECT_EQ(said(table.setup.register_memory(at(0xc3), at(0xda), 1UL << 40, 1, &out)),
              "0 register 0xc3 0xda 1099511627776 1");
    EXPECT_EQ(said(table.setup.register_dma_buf(at(0xc3), at(0xda), 4096, 1, 0, 5, &out)), "4 ");
    EXPECT_EQ(said(table.setup.deregister_memory(at(0xc3), at(0x99))), "0 deregister 0xc3 0x99");
    EXPECT_EQ(said(table.setup.deregister_memory(at(0xc3), nullptr)), "0 ");
  });
}

template <class Table>
int send(const Table& table, size_t size, void** request) {
  if constexpr (std::is_same_v<Table, abi::NetV8>) {
    return table.isend(at(0xc4), at(0xda), static_cast<int>(size), 7, at(0xa1), request);
  } else if constexpr (std::is_same_v<Table, abi::NetV9>) {
    return table.isend(at(0xc4), at(0xda), size, 7, at(0xa1), request);
  } else {
    return table.isend(at(0xc4), at(0xda), size, 7, at(0xa1), at(0xbad), request);
  }
}

TEST(NetTables, send_whole_sizes_and_refuse_negative_ones) {
  with_each([](const auto& table, int version) {
    void* request = at(0x55);
    EXPECT_EQ(said(send(table, 0, &request)), "0 isend 0xc4 0xda 0 7 0xa1");
    EXPECT_EQ(request, nullptr);  // would block
    core.output = at(0x99);
    EXPECT_EQ(said(send(table, INT_MAX, &request)), "0 isend 0xc4 0xda 2147483647 7 0xa1");
    EXPECT_EQ(request, at(0x99));
    EXPECT_EQ(said(send(table, SIZE_MAX, &request)),
              version == 8 ? "5 " : "0 isend 0xc4 0xda 18446744073709551615 7 0xa1");
    core.answer = Result::remote_error;
    EXPECT_EQ(send(table, 1, &request), 6);
  });
}

/// Receives of those sizes, with tags from 100 on, into buffers at 0xd0 on; the marker 0x1 is in `request` before.
template <class Table>
int receive(const Table& table, const std::vector<int64_t>& sizes, void*& request) {
  std::vector<std::conditional_t<std::is_same_v<Table, abi::NetV8>, int, size_t>> given(sizes.begin(), sizes.end());
  std::vector<int> tags;
  std::vector<void*> data;
  std::vector<void*> registrations;
  for (size_t i = 0; i < sizes.size(); ++i) {
    registrations.push_back(at(0xa0 + i));
    tags.push_back(100 + static_cast<int>(i));
    data.push_back(at(0xd0 + i));
  }
  request = at(0x1);
  const int n = static_cast<int>(sizes.size());
  if constexpr (std::is_same_v<Table, abi::NetV8> || std::is_same_v<Table, abi::NetV9>) {
    return table.irecv(at(0xc5), n, data.data(), given.data(), tags.data(), registrations.data(), &request);
  } else {
    return table.irecv(at(0xc5), n, data.data(), given.data(), tags.data(), registrations.data(), nullptr, &request);
  }
}

TEST(NetTables, receive_and_always_overwrite_the_marker) {
  with_each([](const auto& table, int version) {
    void* request = nullptr;
    EXPECT_EQ(said(receive(table, {4096}, request)), "0 irecv 0xc5 1 0xd0/4096/100/0xa0");
    EXPECT_EQ(request, nullptr);  // would block
    core.output = at(0x99);
    EXPECT_EQ(said(receive(table, {1, INT_MAX, 0, 4, 5, 6, 7, 8}, request)),
              "0 irecv 0xc5 8 0xd0/1/100/0xa0 0xd1/2147483647/101/0xa1 0xd2/0/102/0xa2 0xd3/4/103/0xa3 0xd4/5/104/0xa4 "
              "0xd5/6/105/0xa5 0xd6/7/106/0xa6 0xd7/8/107/0xa7");
    EXPECT_EQ(request, at(0x99));
    for (const int n : {0, 9, 64}) {  // the core refuses them, and v8's conversion has no room for more than 8
      EXPECT_EQ(said(receive(table, std::vector<int64_t>(static_cast<size_t>(n), -1), request)),
                "5 irecv 0xc5 " + std::to_string(n));
      EXPECT_EQ(request, nullptr);
    }
    if (version == 8) {
      EXPECT_EQ(said(receive(table, {1, -1}, request)), "5 ");
      EXPECT_EQ(request, nullptr);
    }
    core.answer = Result::remote_error;
    EXPECT_EQ(receive(table, {1}, request), 6);
    EXPECT_EQ(request, nullptr);
  });
}

TEST(NetTables, flush_nothing_test_and_close) {
  with_each([](const auto& table, int) {
    void* request = at(0x55);
    int n = 0;
    int sizes = 0;
    EXPECT_EQ(said(table.devices(&n)), "0 devices");
    EXPECT_EQ(n, 3);
    EXPECT_EQ(said(table.ending.iflush(at(0xc5), 0, nullptr, nullptr, nullptr, &request)), "0 ");
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(said(table.ending.test(at(0x99), &n, nullptr)), "0 test 0x99 0");
    EXPECT_EQ(n, 1);
    EXPECT_NE(said(table.ending.test(at(0x99), &n, &sizes)), "0 test 0x99 0");
    core.answer = Result::remote_error;
    EXPECT_EQ(said(table.ending.test(at(0x99), &n, nullptr)), "6 test 0x99 0");
    EXPECT_EQ(said(table.ending.close_send(at(0xc6))), "6 close_send 0xc6");
    EXPECT_EQ(said(table.ending.close_receive(at(0xc7))), "6 close_receive 0xc7");
    EXPECT_EQ(said(table.ending.close_listen(at(0xc8))), "6 close_listen 0xc8");
  });
}

}  // namespace
}  // namespace ringbolt::nccl
