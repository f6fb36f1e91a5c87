#pragma once

#include <cstdint>
#include <string>

#include "profile/profile.h"

namespace ringbolt::profile {

/// What a program can do that a profile's machine refuses. In the order of kTexts in rules.cpp.
enum class Rule : uint8_t {
  qp_type,
  qp_limit,
  pd_limit,
  pd_port_down,
  cq_limit,
  cqe_limit,
  mr_limit,
  wr_limit,
  sge_limit,
  split_pieces,
  inline_data,
  srq,
  address_handle,
  memory_window,
  completion_channel,
  mr_alignment,
  mr_zero_based,
  mr_access,
  mr_memory,
  mr_crosses_4_gib,
  late_mr,
  err_leak,
  gid_index,
  empty_gid_table,
  unreachable,
  attribute_mask,
  operation,
  write_into_stream,
  message_length,
  empty_send,
  frame_budget,
  frame_mismatch,
  receive_too_early,
  no_receive,
  undelivered,
  count_,
};

struct RuleText {
  const char* name;  ///< "qp-limit": the anchor in docs/profiles.md
  const char* why;   ///< why the real machine does so
  const char* fix;   ///< what to do about it
};

/// Thread-safe.
const RuleText& text_of(Rule rule);

/// An errno of this system as the profile's programs see it. 0 stays 0. Thread-safe. An error that has no entry in
/// the table of Darwin's numbers stays as it is.
int number_of(const Profile& profile, int error);

/// "EOPNOTSUPP (102 on Darwin)": for messages. Thread-safe.
std::string name_of_error(const Profile& profile, int error);

/// The three lines that tell a program's author of a violation: what happened, why, and the fix. `device` is the verbs
/// device, `what` says what was asked with its numbers. `error`: 0 when nothing was refused. Thread-safe.
std::string violation_text(const Profile& profile, Rule rule, const std::string& device, const std::string& what,
                           int error);

}  // namespace ringbolt::profile
