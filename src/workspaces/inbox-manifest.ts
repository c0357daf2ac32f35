import { hash } from 'node:crypto'
import { closeSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { DEFAULT_LIMITS, type FileLimits } from './limits.ts'
import { attempt, ProblemError, type WorkspaceProblem, type WorkspaceResult } from './problem.ts'
import {
  type Opened,
  type OpenFile,
  openDirectory,
  openFile,
  openPart,
  openSeen,
} from './safe-fs/directory.ts'
import { type Pace, startPace } from './safe-fs/pace.ts'
import { readContent } from './safe-fs/read-file.ts'
import { walkTree } from './safe-fs/select-files.ts'

/** An input as the agent finds it. */
export interface InboxFile {
  /** Below inbox/. */
  readonly path: string
  readonly size: number
  readonly sha256: string
  /** Path of the file itself, if it was too large to be copied (C21). */
  readonly reference?: string
}

/** The content of an inbox. Stored outside the workspace, where the agent cannot change it. */
export interface InboxManifest {
  /** Sorted by path, references.json among them. */
  readonly inputs: readonly InboxFile[]
  /** Hash of the content of all inputs, independent of where the workspaces are. */
  readonly hash: string
}

export const REFERENCES = 'references.json'

export function manifestOf(inputs: readonly InboxFile[]): InboxManifest {
  const sorted = [...inputs].sort((one, other) => (one.path < other.path ? -1 : 1))
  return { inputs: sorted, hash: hashInputs(sorted) }
}

/** Skips references.json, which only says where files are; the referenced files themselves count. */
function hashInputs(inputs: readonly InboxFile[]): string {
  const lines = inputs
    .filter(({ path }) => path !== REFERENCES)
    .map(({ path, size, sha256 }) => `${JSON.stringify([path, size, sha256])}\n`)
  return hash('sha256', lines.join(''))
}

interface Difference {
  /** Below inbox/, or the whole path of a reference. */
  readonly path: string
  readonly change: 'added' | 'removed' | 'changed'
}

interface InboxCheck {
  readonly limits?: FileLimits
  readonly signal?: AbortSignal
}

/** Compares the inbox with its manifest (C21): names and content, including references. */
export function checkInbox(
  workspace: string,
  manifest: InboxManifest,
  { limits = DEFAULT_LIMITS, signal }: InboxCheck = {},
): Promise<WorkspaceResult<readonly Difference[]>> {
  const pace = startPace(signal)
  return attempt('inbox', async () => {
    const differences = await compareCopies(workspace, manifest, limits, pace)
    for (const { reference, ...input } of manifest.inputs) {
      if (reference === undefined) continue
      const folder = openDirectory(dirname(reference))
      try {
        if (await isSame(openFile(folder, basename(reference)), reference, input, pace)) continue
        differences.push({ path: reference, change: 'changed' })
      } finally {
        folder.close()
      }
    }
    return differences
  })
}

async function compareCopies(
  workspace: string,
  manifest: InboxManifest,
  limits: FileLimits,
  pace: Pace,
): Promise<Difference[]> {
  const copied = new Map(manifest.inputs.filter(isCopied).map((input) => [input.path, input]))
  const differences: Difference[] = []
  const inbox = openPart(workspace, 'inbox')
  try {
    await walkTree(inbox, {
      limits: { ...limits, files: limits.files + manifest.inputs.length },
      pace,
      async file({ directory, name, path, shown, stat }) {
        const input = copied.get(path)
        copied.delete(path)
        if (input === undefined) differences.push({ path, change: 'added' })
        else if (!(await isSame(openSeen(directory, name, stat), shown, input, pace))) {
          differences.push({ path, change: 'changed' })
        }
      },
      trap(why, segments) {
        const path = segments?.join('/')
        const was = path !== undefined && copied.delete(path)
        differences.push({ path: path ?? why.path, change: was ? 'changed' : 'added' })
      },
    })
  } finally {
    inbox.close()
  }
  for (const path of copied.keys()) differences.push({ path, change: 'removed' })
  return differences
}

const isCopied = ({ reference }: InboxFile) => reference === undefined

async function isSame(
  opened: Opened<OpenFile>,
  shown: string,
  input: InboxFile,
  pace: Pace,
): Promise<boolean> {
  if (!opened.ok) return false
  try {
    if (Number(opened.value.stat.size) !== input.size) return false
    return (await readContent(opened.value, shown, pace)).sha256 === input.sha256
  } catch (error) {
    if (isChange(error)) return false
    throw error
  } finally {
    closeSync(opened.value.fd)
  }
}

function isChange(error: unknown): error is { problem: WorkspaceProblem } {
  return error instanceof ProblemError && error.problem.code === 'changed'
}
