#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/station.h"
#include "verbs/soft_device_test_support.h"

namespace ringbolt::engine::test {

/// Keeps what arrives: chunks by source, copied and released at once unless told to keep them.
class Collector : public Receiver {
 public:
  explicit Collector(Engine& engine) : engine_(engine) {}
  struct Chunk {
    ChunkHeader header;
    std::vector<std::byte> bytes;
  };
  void on_chunk(const ChunkHeader& header, const Receipt& receipt) override {
    while_used();
    if (keeps) {
      kept.push_back(engine_.settle(receipt));
    }
    const auto bytes = keeps ? kept.back().bytes : receipt.bytes;
    chunks.push_back({header, {bytes.begin(), bytes.end()}});
    if (!keeps) {
      engine_.release(receipt.id);
    }
  }
  void on_word(const ChunkHeader& header, std::span<const std::byte> bytes) override {
    words.push_back({header, {bytes.begin(), bytes.end()}});
  }
  void on_beat(uint32_t cable, std::span<const std::byte>) override { ++beats[cable]; }
  void on_cable_failed(uint32_t cable) override { failed.push_back(cable); }

  bool keeps = false;
  std::function<void()> while_used = [] {};  ///< called for each chunk, which lies where it has arrived
  std::vector<Receipt> kept;
  std::vector<Chunk> chunks;
  std::vector<Chunk> words;
  std::map<uint32_t, int> beats;
  std::vector<uint32_t> failed;

 private:
  Engine& engine_;
};

/// All ranks of a fabric in this thread, on the default device, which reaches itself.
class LoopFabric {
 public:
  LoopFabric(uint32_t n_ranks, const std::vector<FabricCable>& cables, uint32_t n_hop_classes = kHopClasses,
             const std::string& like = "", Checksums checksums = Checksums::carried,
             bool may_read_in_place = true)
      : device_(like) {
    const verbs::Library library = verbs::Library::open("soft");
    for (uint32_t rank = 0; rank < n_ranks; ++rank) {
      std::vector<LocalCable> local;
      for (uint32_t i = 0; i < cables.size(); ++i) {
        if (cables[i].a != rank && cables[i].b != rank) {
          continue;
        }
        CablePlan plan;
        plan.peer = cables[i].a == rank ? cables[i].b : cables[i].a;
        plan.gid_index = verbs::test::Device::kGidIndex;
        plan.n_hop_classes = n_hop_classes;
        plan.counts_frames = !like.empty();
        plan.may_read_in_place = may_read_in_place;
        plan.name = "cable " + std::to_string(cables[i].a) + "-" + std::to_string(cables[i].b);
        local.push_back({device_.context->device(), plan, i});
      }
      stations.push_back(std::make_unique<Station>(library, EnginePlan{rank, n_ranks, 77, checksums, cables}, local));
      collectors.push_back(std::make_unique<Collector>(stations.back()->engine()));
      stations.back()->engine().set_receiver(*collectors.back());
    }
    for (auto& station : stations) {
      for (uint32_t i = 0; i < station->n_cables(); ++i) {
        station->connect(i, other_end(*station, i));
      }
    }
  }

  Engine& engine(uint32_t rank) { return stations[rank]->engine(); }
  Collector& collector(uint32_t rank) { return *collectors[rank]; }

  /// Lets all ranks go on as if it were so many milliseconds later.
  void go_on_at(uint64_t later_ms) {
    for (int round = 0; round < 4; ++round) {
      for (uint32_t rank = 0; rank < stations.size(); ++rank) {
        go_on_at(rank, later_ms);
      }
    }
  }
  /// Lets one rank go on likewise.
  void go_on_at(uint32_t rank, uint64_t later_ms) {
    engine(rank).progress(base::now_ns() + later_ms * 1'000'000);
  }

  /// Lets all ranks go on until `is_done`; false after a minute.
  bool run_until(const std::function<bool()>& is_done) {
    const uint64_t deadline = base::now_ns() + 60'000'000'000U;
    while (!is_done()) {
      for (auto& station : stations) {
        station->engine().progress(base::now_ns());
      }
      if (base::now_ns() > deadline) {
        return false;
      }
    }
    return true;
  }

  /// Sends `length` bytes that tell who sent them and where they stand; false if no slot is free.
  bool send(uint32_t from, uint32_t to, uint32_t chunk, uint32_t length, const std::vector<uint32_t>& via = {}) {
    const auto slot = engine(from).take_slot(length);
    if (!slot) {
      return false;
    }
    for (uint32_t i = 0; i < length; ++i) {
      slot->bytes[i] = expected_byte(from, chunk, i);
    }
    engine(from).send(slot->id, length, {to, via, 1, 2, 3, chunk, 5});
    return true;
  }
  static std::byte expected_byte(uint32_t from, uint32_t chunk, uint32_t i) {
    return static_cast<std::byte>(i * 7 + i / 256 + from * 31 + chunk * 101);
  }
  static bool is_sound(const Collector::Chunk& chunk) {
    for (uint32_t i = 0; i < chunk.bytes.size(); ++i) {
      if (chunk.bytes[i] != expected_byte(chunk.header.source, chunk.header.chunk, i)) {
        return false;
      }
    }
    return true;
  }

  verbs::test::Device device_;
  std::vector<std::unique_ptr<Station>> stations;
  std::vector<std::unique_ptr<Collector>> collectors;

 private:
  CableAddress other_end(const Station& station, uint32_t cable) {
    for (const auto& other : stations) {
      for (uint32_t i = 0; other.get() != &station && i < other->n_cables(); ++i) {
        if (other->fabric_cable(i) == station.fabric_cable(cable)) {
          return other->address(i);
        }
      }
    }
    return {};
  }
};

}  // namespace ringbolt::engine::test
