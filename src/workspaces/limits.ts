const MIB = 1024 * 1024

/** How much of what agents made is taken in. Over a limit is a clear error; nothing is cut. */
export interface FileLimits {
  /** Files and folders looked at in one tree. */
  readonly files: number
  /** Folders inside folders. */
  readonly depth: number
  /** Length of a path below the tree's root. */
  readonly pathBytes: number
  /** All copies of one step together. */
  readonly copiedBytes: number
  /** A larger file is handed over by reference (C21). */
  readonly inlineBytes: number
  /** All references of one step together: their content is read once, to hash it. */
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

/** A larger status.json is refused unread. */
export const STATUS_BYTES = 10 * MIB

/** Limit for texts that are read whole: summary.md, error_report.md, instructions.md. */
export const TEXT_BYTES = MIB
