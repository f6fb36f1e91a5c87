#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <memory>
#include <string>

#include "control.h"
#include "options.h"
#include "payload.h"

namespace ringbolt::bench {

/// What one rank tells the others so that they can connect to it and reach its arena.
struct VerbsAddress {
  ibv_gid gid;
  std::array<uint32_t, 2> qp_numbers;
  uint32_t rkey;
  uint64_t arena_base;
};

/// An open device with one arena registered and two RC queue pairs: `to_next` is connected to `to_previous` of the
/// next rank. Uses nothing but <infiniband/verbs.h>, so it runs on any verbs library; which one is said by
/// verbs_library_path(). Throws std::runtime_error. Not thread-safe.
class VerbsEndpoint {
 public:
  static constexpr uint32_t kSendDepth = 512;
  static constexpr uint32_t kReceiveDepth = 1024;
  static constexpr uint32_t kInlineBytes = 64;

  explicit VerbsEndpoint(Memory memory);

  /// Exchanges addresses through `control` and brings both queue pairs to RTS.
  void connect(Control& control, unsigned rank, unsigned ranks);

  ibv_qp* to_next() const { return queue_pairs_[0].get(); }
  ibv_qp* to_previous() const { return queue_pairs_[1].get(); }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* receive_cq() const { return receive_cq_.get(); }
  const Arena& arena() const { return arena_; }
  uint32_t lkey() const { return region_->lkey; }
  uint32_t inline_bytes() const { return inline_bytes_; }
  /// Address of rank `rank`, after connect().
  const VerbsAddress& peer(unsigned rank) const { return peers_.at(rank); }
  /// Says where the memory came from: "ibv_alloc_buf" or "malloc".
  const std::string& memory_source() const { return memory_source_; }

 private:
  template <auto destroy>
  struct Destroy {
    template <class T>
    void operator()(T* object) const {
      destroy(object);
    }
  };
  template <class T, auto destroy>
  using Owned = std::unique_ptr<T, Destroy<destroy>>;

  void open_first_device();
  void make_arena(Memory memory);
  Owned<ibv_qp, ibv_destroy_qp> make_queue_pair();

  Owned<ibv_context, ibv_close_device> context_;
  Owned<ibv_pd, ibv_dealloc_pd> pd_;
  Arena arena_;
  std::shared_ptr<std::byte> buffer_;  ///< gives the arena back to the library that allocated it
  std::string memory_source_;
  Owned<ibv_mr, ibv_dereg_mr> region_;
  Owned<ibv_cq, ibv_destroy_cq> send_cq_;
  Owned<ibv_cq, ibv_destroy_cq> receive_cq_;
  std::array<Owned<ibv_qp, ibv_destroy_qp>, 2> queue_pairs_;
  uint32_t inline_bytes_ = 0;
  std::array<VerbsAddress, 8> peers_{};
};

}  // namespace ringbolt::bench
