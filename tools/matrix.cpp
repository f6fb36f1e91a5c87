#include "commands.h"
namespace ringbolt::tools {
int matrix(const MatrixOptions&) { return 2; }
int probe(const ProbeOptions&) { return 2; }
}
