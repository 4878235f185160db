// SPDX-License-Identifier: GPL-2.0
/*
 * Memory as a GPU's driver maps it: pages that only the driver knows
 * (VM_IO, VM_PFNMAP). The kernel refuses to look them up for another process
 * (process_vm_readv: EFAULT), and asks the driver's access() for
 * /proc/PID/mem.
 *
 * The file is in debugfs and not a device, because FUSE passes mappings on to
 * regular files only.
 */
#include <linux/debugfs.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

#include "mock.h"

static struct dentry *mock_memory_dir;

/* Pages by their index in the file. They stay until the last close. */
static DEFINE_XARRAY(mock_memory_pages);
static DEFINE_MUTEX(mock_memory_lock);
static unsigned int mock_memory_users;

/* Whether access() works: some drivers have none. */
static bool mock_memory_access_works = true;

/* Returns the page, which is made if it is not there yet; NULL without memory. */
static struct page *mock_memory_page(pgoff_t index)
{
	struct page *page = xa_load(&mock_memory_pages, index);
	struct page *other;

	if (page)
		return page;
	page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!page)
		return NULL;
	other = xa_cmpxchg(&mock_memory_pages, index, NULL, page, GFP_KERNEL);
	if (!other)
		return page;
	__free_page(page);
	return xa_is_err(other) ? NULL : other;
}

static vm_fault_t mock_memory_fault(struct vm_fault *vmf)
{
	struct page *page = mock_memory_page(vmf->pgoff);

	if (!page)
		return VM_FAULT_OOM;
	return vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(page));
}

/* Copies for /proc/PID/mem and debuggers, as far as the mapping goes. */
static int mock_memory_access(struct vm_area_struct *vma, unsigned long addr,
			      void *buf, int len, int write)
{
	unsigned long at = addr - vma->vm_start + (vma->vm_pgoff << PAGE_SHIFT);
	int done = 0;

	if (!READ_ONCE(mock_memory_access_works))
		return -EINVAL;
	len = min_t(unsigned long, len, vma->vm_end - addr);
	while (done < len) {
		struct page *page = mock_memory_page((at + done) >> PAGE_SHIFT);
		unsigned int offset = (at + done) & ~PAGE_MASK;
		int some = min_t(int, len - done, PAGE_SIZE - offset);

		if (!page)
			break;
		if (write)
			memcpy(page_address(page) + offset, buf + done, some);
		else
			memcpy(buf + done, page_address(page) + offset, some);
		done += some;
	}
	return done ? done : -ENOMEM;
}

static const struct vm_operations_struct mock_memory_vm_ops = {
	.fault = mock_memory_fault,
	.access = mock_memory_access,
};

static int mock_memory_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	mock_vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &mock_memory_vm_ops;
	return 0;
}

/* Makes whole pages read as zero again, whoever has mapped them. */
static long mock_memory_fallocate(struct file *file, int mode, loff_t offset,
				  loff_t len)
{
	unsigned long index;
	struct page *page;

	if (mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) ||
	    (offset | len) & ~PAGE_MASK)
		return -EOPNOTSUPP;
	xa_for_each_range(&mock_memory_pages, index, page, offset >> PAGE_SHIFT,
			  ((offset + len) >> PAGE_SHIFT) - 1)
		clear_page(page_address(page));
	return 0;
}

static int mock_memory_open(struct inode *inode, struct file *file)
{
	mutex_lock(&mock_memory_lock);
	mock_memory_users++;
	mutex_unlock(&mock_memory_lock);
	return 0;
}

/* The last one frees the memory. A mapping keeps its file open. */
static int mock_memory_release(struct inode *inode, struct file *file)
{
	unsigned long index;
	struct page *page;

	mutex_lock(&mock_memory_lock);
	if (!--mock_memory_users) {
		xa_for_each(&mock_memory_pages, index, page)
			__free_page(page);
		xa_destroy(&mock_memory_pages);
	}
	mutex_unlock(&mock_memory_lock);
	return 0;
}

static const struct file_operations mock_memory_fops = {
	.owner = THIS_MODULE,
	.open = mock_memory_open,
	.release = mock_memory_release,
	.mmap = mock_memory_mmap,
	.fallocate = mock_memory_fallocate,
};

/* Without debugfs there is no such file; what needs it says so. */
void mock_memory_init(void)
{
	mock_memory_dir = debugfs_create_dir("drm-sched-mock", NULL);
	/* The file keeps its own operations: debugfs passes mmap() on to no others. */
	debugfs_create_file_unsafe("memory", 0600, mock_memory_dir, NULL,
				   &mock_memory_fops);
	debugfs_create_bool("access", 0600, mock_memory_dir,
			    &mock_memory_access_works);
}

void mock_memory_fini(void)
{
	debugfs_remove(mock_memory_dir);
}
