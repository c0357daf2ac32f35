const MIB = 1024 * 1024

/** Limits on files that agents made. Exceeding one is an error; nothing is cut. */
export interface FileLimits {
  /** Files and folders in one tree. */
  readonly files: number
  /** Depth of nested folders. */
  readonly depth: number
  /** Length of a path below the tree's root. */
  readonly pathBytes: number
  /** All copies of one step together. */
  readonly copiedBytes: number
  /** Larger files are passed by reference (C21). */
  readonly inlineBytes: number
  /** All references of one step together: each file is read once, to hash it. */
  readonly referencedBytes: number
}

export const DEFAULT_LIMITS: FileLimits = {
  files: 10_000,
  depth: 32,
  pathBytes: 1024,
  copiedBytes: 1024 * MIB,
  inlineBytes: 10 * MIB,
  referencedBytes: 64 * 1024 * MIB,
}

/** A larger status.json is refused without reading it. */
export const STATUS_BYTES = 10 * MIB

/** Limit for texts that are read whole: summary.md, error_report.md, instructions.md. */
export const TEXT_BYTES = MIB
