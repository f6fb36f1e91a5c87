#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ringbolt/group.h"

// What the parts of library_rank share. All throw std::runtime_error that says what was wrong.
namespace ringbolt::test {

void expect(bool is_so, const std::string& what);
void expect_ok(const Status& status);

int32_t value(uint32_t rank, size_t i);
/// value() of so many places.
std::vector<int32_t> numbers(uint32_t rank, size_t count);
/// Each collective once, of so many elements.
void collectives(Group& group, size_t count);

// library_groups.cpp: groups of groups.
void splits(Group& group);
void subgroups(Group& group);
void splits_by_threads(Group& group);
void shrinks_by_threads(Group& group);
void shrinks_in_a_row(Group& group);
void ends(Group& group);

}  // namespace ringbolt::test
