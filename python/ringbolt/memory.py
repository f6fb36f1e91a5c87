"""Memory of other people's arrays as the library takes it: where it lies, how many elements of which type.

Anything with the buffer protocol (NumPy, array.array, bytearray, memoryview, MLX on the CPU), with data_ptr() (PyTorch on the
CPU), or with DLPack. It must lie in a row, in the order of C."""

import ctypes
import enum


class Type(enum.IntEnum):
    """What a buffer's elements are."""

    BOOL = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    FLOAT16 = 9
    BFLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
    COMPLEX64 = 13


SIZES = {Type.BOOL: 1, Type.INT8: 1, Type.INT16: 2, Type.INT32: 4, Type.INT64: 8, Type.UINT8: 1, Type.UINT16: 2, Type.UINT32: 4,
         Type.UINT64: 8, Type.FLOAT16: 2, Type.BFLOAT16: 2, Type.FLOAT32: 4, Type.FLOAT64: 8, Type.COMPLEX64: 8}

_BY_NAME = {one.name.lower(): one for one in Type}
_INTEGERS = {"b": "INT", "h": "INT", "i": "INT", "l": "INT", "q": "INT", "n": "INT",
             "B": "UINT", "H": "UINT", "I": "UINT", "L": "UINT", "Q": "UINT", "N": "UINT"}
_OTHERS = {"?": Type.BOOL, "e": Type.FLOAT16, "f": Type.FLOAT32, "d": Type.FLOAT64, "Zf": Type.COMPLEX64}


class _PyBuffer(ctypes.Structure):  # Python's C API: the buffer structure, part of its stable ABI since 3.11 and the same before
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_FORMAT, _C_CONTIGUOUS = 0x4, 0x38  # PyBUF_FORMAT, PyBUF_C_CONTIGUOUS
_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int], ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [ctypes.POINTER(_PyBuffer)], None
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes, _capsule_pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


class _Tensor(ctypes.Structure):  # DLPack's DLTensor
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_HOST_DEVICES = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost
_DLPACK_CODES = {0: "INT", 1: "UINT", 2: "FLOAT", 4: "BFLOAT", 5: "COMPLEX", 6: "BOOL"}


class Memory:
    """address, count (elements), type; holds the array until release(), or until it is dropped itself."""

    __slots__ = ("address", "count", "type", "_buffer", "_held")

    def __init__(self, data, is_written, as_type=None):
        """as_type: read the bytes as elements of this type, where the array does not say. Raises TypeError or ValueError."""
        self._buffer = self._held = None
        if hasattr(data, "data_ptr"):
            self._of_torch(data)
        elif not self._by_buffer_protocol(data, is_written):
            self._by_dlpack(data, is_written)
        if as_type is not None:
            size = self.count * SIZES[self.type] if self.type is not None else self.count
            if size % SIZES[as_type] != 0:
                raise ValueError(f"{size} bytes are no number of elements of {as_type.name.lower()}")
            self.type, self.count = as_type, size // SIZES[as_type]
        elif self.type is None:
            raise TypeError(f"{_kind(data)} does not say what its elements are: give type=")

    def _of_torch(self, tensor):
        if tensor.device.type != "cpu":
            raise TypeError(f"the tensor lies on {tensor.device}: give one on the CPU (.cpu())")
        if not tensor.is_contiguous():
            raise ValueError("the tensor does not lie in a row: give .contiguous()")
        self.type = _of_dtype(tensor.dtype, lambda dtype: str(dtype).rsplit(".", 1)[-1])
        if self.type is None:
            raise TypeError(f"elements of {tensor.dtype} can't be sent")
        self.address, self.count, self._held = tensor.data_ptr(), tensor.numel(), tensor

    def _by_buffer_protocol(self, data, is_written):
        buffer = _PyBuffer()
        try:
            _get_buffer(data, buffer, _FORMAT | _C_CONTIGUOUS)
        except (BufferError, ValueError) as problem:
            if hasattr(data, "__array_interface__"):  # NumPy's, of a type that the protocol has no letter for, as bfloat16
                return self._by_array_interface(data, is_written)
            raise ValueError(f"{_kind(data)}: {problem}: give an array that lies in a row") from None
        except TypeError:
            return False
        self._buffer, self._held = buffer, data
        if is_written and buffer.readonly:
            self.release()
            raise ValueError(f"{_kind(data)} can't be written to")
        dtype = getattr(data, "dtype", None)
        if hasattr(dtype, "name"):
            self.type = _of_dtype(dtype, lambda dtype: dtype.name)
            if self.type is None:
                self.release()
                raise TypeError(f"elements of {dtype.name} can't be sent")
        else:
            self.type = _of_format(buffer)
        self.address = buffer.buf or 0
        self.count = buffer.len // buffer.itemsize if buffer.itemsize > 0 else 0
        if self.type is not None and SIZES[self.type] != buffer.itemsize:
            self.release()
            raise TypeError(f"{_kind(data)}: {buffer.itemsize} bytes an element are no {self.type.name.lower()}")
        return True

    def _by_array_interface(self, data, is_written):
        interface, name = data.__array_interface__, data.dtype.name
        if interface["strides"] is not None:
            raise ValueError("the array does not lie in a row: give numpy.ascontiguousarray() of it")
        if is_written and interface["data"][1]:
            raise ValueError("the array can't be written to")
        self.type = _BY_NAME.get(name)
        if self.type is None:
            raise TypeError(f"elements of {name} can't be sent")
        self.address, self.count, self._held = interface["data"][0], data.size, data
        return True

    def _by_dlpack(self, data, is_written):
        if not hasattr(data, "__dlpack__"):
            raise TypeError(f"{_kind(data)} has neither the buffer protocol nor DLPack")
        capsule = data.__dlpack__()
        tensor = _Tensor.from_address(_capsule_pointer(capsule, b"dltensor"))
        if tensor.device_type not in _HOST_DEVICES:
            raise TypeError(f"{_kind(data)} lies on a device (DLPack's kind {tensor.device_type}): give one in memory")
        self.count, expected = 1, 1
        for i in reversed(range(tensor.ndim)):
            if tensor.strides and tensor.shape[i] > 1 and tensor.strides[i] != expected:
                raise ValueError(f"{_kind(data)} does not lie in a row")
            expected *= tensor.shape[i]
            self.count *= tensor.shape[i]
        word = _DLPACK_CODES.get(tensor.code)
        name = "BOOL" if word == "BOOL" else f"{word}{tensor.bits}"
        if tensor.lanes != 1 or name not in Type.__members__:
            raise TypeError(f"{_kind(data)}: elements of DLPack's type {tensor.code} with {tensor.bits} bits can't be sent")
        self.type = Type[name]
        self.address, self._held = (tensor.data or 0) + tensor.byte_offset, capsule  # whose destructor gives it back

    def release(self):
        """Gives the array back to its owner."""
        if self._buffer is not None:
            _release_buffer(self._buffer)
            self._buffer = None
        self._held = None

    def __del__(self):
        self.release()


_known = {}  # what a dtype, or a format with the size of an element, has been found to be: asking takes longer


def _of_dtype(dtype, name_of):
    try:
        return _known[dtype]
    except KeyError:
        _known[dtype] = _BY_NAME.get(name_of(dtype))
        return _known[dtype]
    except TypeError:  # it can't be a key
        return _BY_NAME.get(name_of(dtype))


def _of_format(buffer):
    key = (buffer.format, buffer.itemsize)
    if key not in _known:
        _known[key] = _ask_format(buffer)
    return _known[key]


def _ask_format(buffer):
    text = (buffer.format or b"B").decode()
    if text[:1] in "<=@" and len(text) > 1:  # of this machine's order, which is little-endian
        text = text[1:]
    if text in _INTEGERS:
        return Type[f"{_INTEGERS[text]}{8 * buffer.itemsize}"]
    if text == "c":
        return Type.UINT8
    found = _OTHERS.get(text, _BY_NAME.get(text))  # MLX writes "bfloat16", which has no letter
    if found is None:
        raise TypeError(f"elements of format {text!r} can't be sent")
    return found


def _kind(data):
    return f"an object of type {type(data).__name__}"
