#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "allocations.h"
#include "cases.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

// The fields' offsets in all versions: NCCL's own layer over them does the same.
int most_receives(Rank& rank) {
  std::array<unsigned char, sizeof(abi::PropertiesV12)> raw{};
  expect(rank.plugin().properties(0, raw.data()), "getProperties");
  const size_t offset =
      rank.plugin().version() == 8 ? offsetof(abi::PropertiesV8, max_recvs) : offsetof(abi::PropertiesV9, max_recvs);
  int most = 0;
  std::memcpy(&most, raw.data() + offset, sizeof most);
  return most;
}

int memory_types(Rank& rank) {
  std::array<unsigned char, sizeof(abi::PropertiesV12)> raw{};
  expect(rank.plugin().properties(0, raw.data()), "getProperties");
  int types = 0;
  std::memcpy(&types, raw.data() + offsetof(abi::PropertiesV8, ptr_support), sizeof types);
  return types;
}

/// The innermost calls that are neither this program's nor the standard libraries'.
std::string origin_of(const Allocations& counted) {
  std::string text;
  for (void* const address : counted.first) {
    Dl_info info{};
    if (address == nullptr || dladdr(address, &info) == 0) {
      continue;
    }
    const std::string_view file = info.dli_fname;
    if (file.find("libstdc++") == std::string_view::npos && file.find("libc.so") == std::string_view::npos &&
        file.find("nccl_harness") == std::string_view::npos) {
      std::array<char, 32> offset{};
      std::snprintf(offset.data(), offset.size(), "+%#zx",
                    static_cast<size_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_fbase)));
      text += (text.empty() ? "" : " < ") + std::string(file.substr(file.rfind('/') + 1)) + offset.data();
    }
  }
  return text;
}

void allocations(Rank& rank) {
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  Stream stream{.sizes = {0, 8, 128, 4096, 65537, 524288}, .count = 60, .depth = 8};
  run_streams(rank, links, stream, 20);  // what is made once, at first use, may be made
  stream.count = 1200;
  rank.plugin().count_allocations(true);
  run_streams(rank, links, stream, 40);
  rank.plugin().count_allocations(false);
  Allocations counted;
  rank.progress().run([&] { counted = t_allocations; });
  if (!allocations_are_counted()) {
    rank.note("nothing counted: a sanitizer allocates");
  } else if (counted.count > 0) {
    throw Failure(std::to_string(counted.count) + " calls of the allocator in data calls, the first by " +
                  origin_of(counted));
  } else {
    rank.note("0 allocations in data calls");
  }
  rank.barrier();
  close_links(rank, links);
}

/// Sends members of one grouped receive in an order of its own; `turn` picks it.
int tag_at(int position, int count, uint64_t turn) {
  return 100 + (turn % 2 == 0 ? count - 1 - position : (position + 1) % count);
}

constexpr size_t kMember = 8192;
constexpr uint64_t kGroups = 40;
size_t member_bytes(int tag, uint64_t turn) { return static_cast<size_t>(tag) * 37 + turn * 64 + 1; }

void send_groups(Rank& rank, const Link& link, Buffer& buffer, void* region, int count) {
  for (uint64_t turn = 0; turn < kGroups; ++turn) {
    std::vector<void*> requests(static_cast<size_t>(count));
    for (int position = 0; position < count; ++position) {
      const int tag = tag_at(position, count, turn);
      unsigned char* const data = buffer.data() + static_cast<size_t>(position) * kMember;
      fill(data, member_bytes(tag, turn), {0, tag, turn});
      void*& request = requests[static_cast<size_t>(position)];
      const uint64_t begin = now_ns();
      do {
        expect(rank.plugin().isend(link.send, data, member_bytes(tag, turn), tag, region, &request), "isend");
      } while (request == nullptr && seconds_since(begin) < 10);
    }
    const uint64_t begin = now_ns();
    for (void* const request : requests) {
      for (int done = 0; done == 0; yield_now()) {
        expect(rank.plugin().test(request, &done, nullptr), "test of a member's send");
        if (seconds_since(begin) > 10) {
          throw Failure("a member of group " + std::to_string(turn) + " is not sent after 10 s");
        }
      }
    }
  }
}

void receive_group(Rank& rank, const Link& link, Buffer& buffer, void* region, int count, uint64_t turn) {
  const size_t members = static_cast<size_t>(count);
  std::vector<void*> data(members);
  std::vector<size_t> bytes(members, kMember - kCanaryBytes);
  std::vector<int> tags(members);
  std::vector<void*> regions(members, region);
  for (size_t i = 0; i < members; ++i) {
    data[i] = buffer.data() + i * kMember;
    tags[i] = 100 + static_cast<int>(i);
    fill_canary(data[i], kMember);
  }
  void* request = nullptr;
  const uint64_t begin = now_ns();
  do {
    expect(rank.plugin().irecv(link.receive, count, data.data(), bytes.data(), tags.data(), regions.data(), &request),
           "a grouped irecv");
  } while (request == nullptr && seconds_since(begin) < 10);
  std::array<int, abi::kMostSizes> sizes{};
  sizes.fill(-1);
  for (int done = 0; done == 0; yield_now()) {
    expect(rank.plugin().test(request, &done, sizes.data()), "test of a grouped receive");
    if (seconds_since(begin) > 10) {
      throw Failure("group " + std::to_string(turn) + " is not there after 10 s");
    }
  }
  for (size_t i = 0; i < abi::kMostSizes; ++i) {
    const int wanted = i < members ? static_cast<int>(member_bytes(tags[i], turn)) : -1;
    if (sizes[i] != wanted) {
      throw Failure("group " + std::to_string(turn) + ": entry " + std::to_string(i) + " of the sizes is " +
                    std::to_string(sizes[i]) + ", not " + std::to_string(wanted) + (i < members ? "" : " (untouched)"));
    }
  }
  for (size_t i = 0; i < members; ++i) {
    const size_t length = member_bytes(tags[i], turn);
    const unsigned char* const found = buffer.data() + i * kMember;
    if (first_wrong(found, length, {0, tags[i], turn}).has_value()) {
      throw Failure("group " + std::to_string(turn) + ": tag " + std::to_string(tags[i]) + " is not in its place");
    }
    for (size_t k = length; k < kMember; ++k) {
      if (found[k] != canary_byte(k)) {
        throw Failure("group " + std::to_string(turn) + ": byte " + std::to_string(k) + " was written to");
      }
    }
  }
}

/// Sizes of groups double up to what the properties allow; one more must be refused.
void grouped(Rank& rank) {
  if (rank.id() > 1) {
    return;
  }
  std::vector<Link> links = open_links(rank, {1 - rank.id()}, 1);
  Link& link = links[0];
  const int most = most_receives(rank);
  Buffer buffer(static_cast<size_t>(most + 1) * kMember);
  void* const comm = rank.id() == 0 ? link.send : link.receive;
  void* region = nullptr;
  expect(rank.plugin().reg_mr(comm, buffer.data(), buffer.bytes(), abi::kHostMemory, &region), "regMr");
  for (int count = 2; count <= most; count = count < most ? std::min(2 * count, most) : most + 1) {
    rank.progress().run([&] {
      if (rank.id() == 0) {
        send_groups(rank, link, buffer, region, count);
      } else {
        for (uint64_t turn = 0; turn < kGroups; ++turn) {
          receive_group(rank, link, buffer, region, count, turn);
        }
      }
    });
  }
  if (rank.id() == 1) {
    rank.progress().run([&] {
      const size_t members = static_cast<size_t>(most) + 1;
      std::vector<void*> data(members, buffer.data());
      std::vector<size_t> bytes(members, 8);
      std::vector<int> tags(members, 0);
      std::vector<void*> regions(members, region);
      void* request = nullptr;
      expect(
          rank.plugin().irecv(link.receive, most + 1, data.data(), bytes.data(), tags.data(), regions.data(), &request),
          "irecv of " + std::to_string(most + 1) + " buffers", abi::kInvalidUsage);
    });
    rank.note(most > 1 ? "groups of up to " + std::to_string(most) : "no groups: maxRecvs is 1");
  }
  expect(rank.plugin().dereg_mr(comm, region), "deregMr");
  rank.barrier();
  close_links(rank, links);
}

/// What a plugin without the CUDA and dma-buf bits must refuse, and what always succeeds.
void check_refusals(Rank& rank, const Link& link, Buffer& buffer) {
  const int types = memory_types(rank);
  void* region = nullptr;
  expect(rank.plugin().dereg_mr(link.send, nullptr), "deregMr of nothing");
  if ((types & abi::kCudaMemory) == 0) {
    if (rank.plugin().reg_mr(link.send, buffer.data(), 4096, abi::kCudaMemory, &region) == abi::kSuccess) {
      throw Failure("regMr takes CUDA memory, which the properties don't offer");
    }
    void* data = buffer.data();
    int bytes = 8;
    void* request = nullptr;
    rank.progress().run([&] {
      expect(rank.plugin().iflush(link.receive, 1, &data, &bytes, &region, &request), "iflush of host memory");
    });
    if (request != nullptr) {
      throw Failure("iflush of host memory makes a request");
    }
  }
  if ((types & abi::kDmaBuf) == 0 && rank.plugin().has_dma_buf() &&
      rank.plugin().reg_dma_buf(link.send, buffer.data(), 4096, -1, &region) == abi::kSuccess) {
    throw Failure("regMrDmaBuf succeeds, which the properties don't offer");
  }
}

/// NCCL registers user buffers on the service thread while the progress thread is at work on the same comm.
void registration(Rank& rank) {
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  Buffer buffer(8U << 20U);
  check_refusals(rank, links[0], buffer);
  std::vector<Sender> senders;
  std::vector<Receiver> receivers;
  for (const Link& link : links) {
    const Stream stream{.sizes = {65536, 200, 300'000}, .count = 1500, .depth = 8};
    senders.emplace_back(rank, link, stream);
    receivers.emplace_back(rank, link, stream);
  }
  rank.step("register and deregister under traffic");
  std::atomic<bool> is_over = false;
  auto traffic = rank.progress().start([&] {
    drive(senders, receivers, 60);
    is_over = true;
  });
  uint64_t turn = 0;
  const auto is_running = [&] {
    return !is_over && traffic.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  };
  for (; is_running() || turn < 50; ++turn) {
    // Parts of one buffer, overlapping, on all comms, not given back in the order of taking.
    std::vector<std::pair<void*, void*>> taken;
    for (const Link& link : links) {
      for (void* const comm : {link.send, link.receive}) {
        const size_t offset = static_cast<size_t>(mixed(turn + taken.size()) % (4U << 20U));
        void* region = nullptr;
        expect(rank.plugin().reg_mr(comm, buffer.data() + offset, 1 + offset / 3, abi::kHostMemory, &region), "regMr");
        taken.emplace_back(comm, region);
      }
    }
    std::rotate(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(turn % taken.size()), taken.end());
    for (const auto& [comm, region] : taken) {
      expect(rank.plugin().dereg_mr(comm, region), "deregMr");
    }
    sleep_s(0.0005);
  }
  traffic.get();
  for (Sender& sender : senders) {
    sender.end();
  }
  for (Receiver& receiver : receivers) {
    receiver.end();
  }
  rank.barrier();
  close_links(rank, links);
}

}  // namespace

std::vector<Case> memory_cases() {
  return {{.name = "allocations", .asserts = "data calls neither allocate nor free", .run = allocations, .limit_s = 60},
          {.name = "grouped", .asserts = "grouped receives place members by tag and tell their sizes", .run = grouped},
          {.name = "registration",
           .asserts = "regMr and deregMr on the service thread under traffic",
           .run = registration,
           .limit_s = 60}};
}

}  // namespace ringbolt::test
