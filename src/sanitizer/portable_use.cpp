#include "sanitizer/portable_use.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace ringbolt::sanitizer {
namespace {

/// `why`: empty where nothing is wrong with it.
std::optional<Finding> not_everywhere(std::string_view what, const std::string& why, std::string_view done,
                                      const base::CallSite& site) {
  if (why.empty()) {
    return std::nullopt;
  }
  return Finding{
      Kind::portable,
      "not-everywhere",
      fmt::format("{} here and not everywhere", what),
      "fails on " + why,
      {{done, site}},
      "ask ibv_query_device and ibv_query_port, and do with what they grant; docs/profiles.md has the machines"};
}

}  // namespace

PortableUse::PortableUse(bool is_wished_for) {
  if (is_wished_for) {
    machines_.emplace();
  }
}

std::optional<Finding> PortableUse::of_queue_pair(const ibv_qp_init_attr& wanted, const base::CallSite& site) const {
  return machines_ ? not_everywhere("the queue pair works", machines_->of_queue_pair(wanted), "made", site)
                   : std::nullopt;
}

std::optional<Finding> PortableUse::of_change(const ibv_qp_attr& attributes, int mask,
                                              const base::CallSite& site) const {
  return machines_
             ? not_everywhere("the queue pair's attributes work", machines_->of_change(attributes, mask), "set", site)
             : std::nullopt;
}

std::optional<Finding> PortableUse::of_queue(const ibv_cq& cq, const base::CallSite& site) const {
  return machines_
             ? not_everywhere("the completion queue works",
                              machines_->of_queue(static_cast<uint32_t>(cq.cqe), cq.channel != nullptr), "made", site)
             : std::nullopt;
}

std::optional<Finding> PortableUse::of_srq(const base::CallSite& site) const {
  return machines_ ? not_everywhere("the shared receive queue works", machines_->of_srq(), "made", site) : std::nullopt;
}

std::optional<Finding> PortableUse::of_region(uint64_t address, uint64_t iova, uint32_t access,
                                              const base::CallSite& site) const {
  return machines_ ? not_everywhere("the region works", machines_->of_region(address, iova, access), "registered", site)
                   : std::nullopt;
}

std::optional<Finding> PortableUse::of_request(ibv_wr_opcode opcode, uint64_t length_bytes,
                                               const base::CallSite& site) const {
  return machines_ ? not_everywhere("the request works", machines_->of_request(opcode, length_bytes), "posted", site)
                   : std::nullopt;
}

std::optional<Finding> PortableUse::of_path(const ibv_ah_attr& path, bool is_looked_up,
                                            const base::CallSite& site) const {
  if (!machines_ || path.is_global == 0 || is_looked_up) {
    return std::nullopt;
  }
  return Finding{
      Kind::portable,
      "gid-index-guessed",
      "a GID index is used that was never looked up",
      fmt::format("grh.sgid_index is {}: IPv4 by RoCE v2 is at 1 on most machines, at 2 on a Mac that renewed its "
                  "address, at 3 on mlx5",
                  path.grh.sgid_index),
      {{"set", site}},
      "search the table with ibv_query_gid_ex or ibv_query_gid_table for the address and type that you mean"};
}

}  // namespace ringbolt::sanitizer
