/* files - a store's objects, and functions that give or take bytes, as Arrow's files. */
#include "columnar/internal.h"

namespace tarn
{

namespace
{
const int64_t kGatherSize = 1 << 20;
}

arrow::Status Pending::keep(struct tarn_status *owned)
{
    if (owned == TARN_OK)
        return arrow::Status::OK();
    arrow::Status told = arrow::Status::IOError(tarn_status_message(owned));
    tarn_status_free(status_);
    status_ = owned;
    return told;
}

void Pending::rethrow()
{
    if (status_ != NULL)
        throw Failure(tarn_move(status_));
}

arrow::Status StoreFile::Seek(int64_t position)
{
    if (position < 0)
        return arrow::Status::Invalid("negative position");
    position_ = position;
    return arrow::Status::OK();
}

arrow::Result<int64_t> StoreFile::ReadAt(int64_t position, int64_t size, void *out)
{
    if (position < 0 || size < 0)
        return arrow::Status::Invalid("negative position or size");
    size_t got = 0;
    ARROW_RETURN_NOT_OK(pending.keep(
        tarn_store_reader_read_at(reader_, op, position, (size_t)size, (uint8_t *)out, &got)));
    return (int64_t)got;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> StoreFile::ReadAt(int64_t position, int64_t size)
{
    int64_t left =
        tarn_store_reader_size(reader_) - position; /* a size from a footer is not to be believed */
    if (position < 0 || size < 0 || left < 0)
        return arrow::Status::Invalid("read beyond the end");
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::ResizableBuffer> buffer,
                          arrow::AllocateResizableBuffer(std::min(size, left)));
    ARROW_ASSIGN_OR_RAISE(int64_t got, ReadAt(position, buffer->size(), buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
}

arrow::Result<int64_t> StoreFile::Read(int64_t size, void *out)
{
    ARROW_ASSIGN_OR_RAISE(int64_t got, ReadAt(position_, size, out));
    position_ += got;
    return got;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> StoreFile::Read(int64_t size)
{
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer, ReadAt(position_, size));
    position_ += buffer->size();
    return buffer;
}

struct tarn_status *told_by(const std::shared_ptr<StoreFile> &file, struct tarn_status *status)
{
    if (status == TARN_OK || file == nullptr)
        return status;
    struct tarn_status *told = guarded(TARN_INTERNAL, "", [&] { file->pending.rethrow(); });
    if (told == TARN_OK)
        return status;
    tarn_status_free(status);
    return told;
}

arrow::Status Sink::flush()
{
    if (diverted_ != NULL || gathered_.empty())
        return arrow::Status::OK();
    arrow::Status status = pending.keep(push_(op, slice_of(gathered_)));
    gathered_.clear();
    return status;
}

arrow::Status Sink::Write(const void *data, int64_t size)
{
    if (diverted_ != NULL) {
        diverted_->append((const char *)data, (size_t)size);
        return arrow::Status::OK();
    }
    written_ += size;
    if (size >= kGatherSize) {
        ARROW_RETURN_NOT_OK(flush());
        return pending.keep(push_(op, tarn_slice_of(data, (size_t)size)));
    }
    gathered_.append((const char *)data, (size_t)size);
    return (int64_t)gathered_.size() >= kGatherSize ? flush() : arrow::Status::OK();
}

arrow::Result<int64_t> PullStream::Read(int64_t size, void *out)
{
    int64_t total = std::min(size, (int64_t)head_.size());
    memcpy(out, head_.data(), (size_t)total);
    head_.erase(0, (size_t)total);
    while (total < size) { /* Arrow takes a short read for the end */
        size_t got = 0;
        ARROW_RETURN_NOT_OK(
            pending.keep(pull_(arg_, op, (uint8_t *)out + total, (size_t)(size - total), &got)));
        if (got == 0)
            break;
        total += (int64_t)got;
    }
    position_ += total;
    return total;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> PullStream::Read(int64_t size)
{
    /* A stream's end is unknown, so a claimed size is reached step by step, never allocated at once. */
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::ResizableBuffer> buffer,
                          arrow::AllocateResizableBuffer(0));
    int64_t total = 0;
    while (total < size) {
        int64_t step = std::min(size - total, std::max(total, kGatherSize));
        ARROW_RETURN_NOT_OK(buffer->Resize(total + step, false));
        ARROW_ASSIGN_OR_RAISE(int64_t got, Read(step, buffer->mutable_data() + total));
        total += got;
        if (got < step)
            break;
    }
    ARROW_RETURN_NOT_OK(buffer->Resize(total));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
}

} // namespace tarn
