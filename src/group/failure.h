#pragma once

#include "mesh/failure.h"

namespace ringbolt::group {

using mesh::JoinError;  // no group came about either

}  // namespace ringbolt::group
