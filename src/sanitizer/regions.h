#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/calling_place.h"
#include "sanitizer/request.h"
#include "sanitizer/spans.h"

namespace ringbolt::sanitizer {

/// A memory region as the program registered it (ibv_reg_mr(3)).
/// A value. `pd` is compared, not followed.
struct Region {
  uint64_t address = 0;
  uint64_t length = 0;  ///< bytes
  uint64_t iova = 0;    ///< what requests call its first byte
  uint32_t access = 0;
  const ibv_pd* pd = nullptr;
  base::CallSite made{};

  bool overlaps(const Piece& piece) const {
    return piece.address < address + length && address < piece.address + piece.length;
  }
  bool lets_device_write() const { return (access & IBV_ACCESS_LOCAL_WRITE) != 0; }
  bool lets_peers_write() const { return (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0; }
};

/// Of one that was just registered.
Region region_of(const ibv_mr& mr, uint64_t iova, uint32_t access, const base::CallSite& site);

/// The registered memory of this process, by lkey: where a request's pieces lie, and where peers may write at any time.
/// Under the lock of Shadow.
class Regions {
 public:
  /// One that was there under that key is forgotten: it was deregistered without our seeing it.
  void add(uint32_t lkey, const Region& region);
  /// ibv_rereg_mr(3). `moves`: requests name it by its address from here on, wherever it was; `access`: the new one, if
  /// it is another. What it is then.
  Region change(const ibv_mr& mr, bool moves, std::optional<uint32_t> access);
  /// Peers can't write there, until change().
  void hide(uint32_t lkey);
  void remove(uint32_t lkey);
  void clear();

  /// Appends to the request's pieces what `list` names, without empty ones. False: some of it lies outside of its
  /// region, in no region of the request's domain, or where the request would write and may not, which is then its
  /// `read_only`; the device will say so (InfiniBand Architecture Specification 1.4, 10.6.3).
  /// Pieces that are sound are appended all the same.
  bool resolve(Request& request, std::span<const ibv_sge> list) const;
  /// Whether a region that peers may write to has some of it, the request's own or another.
  bool is_exposed(const Piece& piece) const;

 private:
  std::unordered_map<uint32_t, Region> regions_;
  Spans exposed_;  // regions that peers may write to
};

}  // namespace ringbolt::sanitizer
