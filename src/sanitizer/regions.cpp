#include "sanitizer/regions.h"

namespace ringbolt::sanitizer {

Region region_of(const ibv_mr& mr, uint64_t iova, uint32_t access, const base::CallSite& site) {
  const uint64_t first = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova;
  return {reinterpret_cast<uint64_t>(mr.addr), mr.length, first, access, mr.pd, site};
}

void Regions::add(uint32_t lkey, const Region& region) {
  regions_[lkey] = region;
  if (region.lets_peers_write()) {
    exposed_.add(region.address, region.length, lkey);
  }
}

Region Regions::change(const ibv_mr& mr, bool moves, std::optional<uint32_t> access) {
  hide(mr.lkey);
  const Region before = regions_[mr.lkey];
  const auto address = reinterpret_cast<uint64_t>(mr.addr);
  const Region now{address, mr.length,  moves ? address : before.iova, access.value_or(before.access),
                   mr.pd,   before.made};
  add(mr.lkey, now);
  return now;
}

void Regions::hide(uint32_t lkey) {
  if (const auto known = regions_.find(lkey); known != regions_.end()) {
    exposed_.remove(known->second.address, lkey);
  }
}

void Regions::remove(uint32_t lkey) {
  hide(lkey);
  regions_.erase(lkey);
}

void Regions::clear() {
  regions_.clear();
  exposed_ = {};
}

bool Regions::resolve(Request& request, std::span<const ibv_sge> list) const {
  bool is_sound = true;
  for (size_t i = 0; i < list.size(); ++i) {
    const ibv_sge& one = list[i];
    if (one.length == 0) {
      continue;
    }
    const auto known = regions_.find(one.lkey);
    const Region* const region = known == regions_.end() ? nullptr : &known->second;
    // Without sums that might wrap: the program's numbers may be anything.
    const bool is_there = region != nullptr && region->pd == request.pd && one.addr >= region->iova &&
                          one.addr - region->iova <= region->length &&
                          one.length <= region->length - (one.addr - region->iova);
    const bool is_good = is_there && (request.use == Use::send || region->lets_device_write());
    if (is_there && !is_good) {
      request.read_only = {one.lkey, region->made};
    }
    if (is_good) {
      request.pieces.push_back({region->address + (one.addr - region->iova), one.length, one.lkey, i, {}});
    }
    is_sound = is_sound && is_good;
  }
  return is_sound;
}

bool Regions::is_exposed(const Piece& piece) const {
  return exposed_.overlap(piece.address, piece.length, [](uint32_t) { return true; }).has_value();
}

}  // namespace ringbolt::sanitizer
