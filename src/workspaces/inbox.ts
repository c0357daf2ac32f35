import { realpathSync } from 'node:fs'
import { basename, dirname, relative, sep } from 'node:path'
import { type Copier, openCopier } from './inbox-copier.ts'
import type { InboxFile, InboxManifest } from './inbox-manifest.ts'
import { DEFAULT_LIMITS, type FileLimits, TEXT_BYTES } from './limits.ts'
import {
  attempt,
  ProblemError,
  problem,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from './problem.ts'
import { type Directory, openDirectory, openFolder, openFolders, openPart } from './safe-fs/directory.ts'
import { showName, splitPath } from './safe-fs/entry-name.ts'
import { type Pace, startPace } from './safe-fs/pace.ts'
import { readSmall } from './safe-fs/read-file.ts'
import {
  lookForWithheld,
  parseOutputs,
  selectFiles,
  type Withheld,
  type WithheldSeen,
} from './safe-fs/select-files.ts'

interface AddedInputs {
  readonly inputs: readonly InboxFile[]
  /** Entries that were selected but cannot be taken, each with the reason. */
  readonly leftOut: readonly WorkspaceProblem[]
}

export interface OutputsWanted {
  /** The folder of the agent that made them. */
  readonly workspace: string
  /** Name for messages. */
  readonly agent: string
  /** Patterns, with or without `outbox/` in front. */
  readonly outputs: readonly string[]
  /** `inbox/source_data/` (S4.13). */
  readonly copyTo: string
  /** The outputs as they were validated, by paths below outbox/. Anything else is refused: the outbox changed since then. */
  readonly validated?: readonly { readonly path: string; readonly sha256: string }[]
}

export interface InputWanted {
  /** A file or folder that belongs to the user. */
  readonly path: string
  /** `inbox/data.csv`; with a slash at the end, a folder in which it keeps its name. */
  readonly to: string
  /** A parent folder that agents can write to: links below it are not followed. */
  readonly within?: string
}

/** An inbox that is being filled. It replaces the previous one completely or not at all. */
export interface InboxDraft {
  /** A file of the protocol itself: instructions.md, dependencies.json. */
  write(path: string, text: string): Promise<WorkspaceResult<InboxFile>>
  addInput(wanted: InputWanted): Promise<WorkspaceResult<AddedInputs>>
  addOutputs(wanted: OutputsWanted): Promise<WorkspaceResult<AddedInputs>>
  /** Makes the files added so far win over later ones for the same place. */
  prefer(): void
  /** Makes it read-only and puts it in place. */
  seal(): Promise<WorkspaceResult<InboxManifest>>
  discard(): Promise<void>
}

interface InboxOptions {
  readonly limits?: FileLimits
  /** Files that are never taken from the user's folders; called only if there are inputs. */
  readonly withheld?: (() => readonly Withheld[]) | undefined
  readonly signal?: AbortSignal
}

export async function draftInbox(
  workspace: string,
  { limits = DEFAULT_LIMITS, withheld = () => [], signal }: InboxOptions,
): Promise<WorkspaceResult<InboxDraft>> {
  const pace = startPace(signal)
  const opened = await attempt('inbox', () => openCopier(workspace, { limits, pace }))
  return opened.ok ? { ok: true, value: draftBy(opened.value, limits, pace, withheld) } : opened
}

function draftBy(
  copier: Copier,
  limits: FileLimits,
  pace: Pace,
  withheldHere: () => readonly Withheld[],
): InboxDraft {
  return {
    write: (path, text) => attempt(`inbox/${path}`, () => copier.write(splitTarget(path), text)),
    addInput: ({ path, to, within }) =>
      attempt(showName(path), async () => {
        if (within !== undefined)
          return await takeFolder(openWithin(within, path), path, splitTarget(to), 'inside')
        // The user may name a link: its target is then the input.
        const real = realpathSync(path)
        const withheld = lookForWithheld(withheldHere())
        withheld.refuseWithin(real, showName(path))
        const parent = openDirectory(dirname(real))
        try {
          const name = basename(real)
          const target = targetOf(to, basename(path))
          const folder = openFolder(parent, name)
          if (!folder.ok && folder.error.code !== 'not_a_folder') throw new ProblemError(folder.error)
          if (!folder.ok) return { inputs: [await copier.takeFile(parent, name, real, target)], leftOut: [] }
          return await takeFolder(folder.value, real, splitTarget(to), 'any', withheld)
        } finally {
          parent.close()
        }
      }),
    async addOutputs({ workspace: from, agent, outputs, copyTo, validated }) {
      const patterns = parseOutputs(outputs)
      if (!patterns.ok) return patterns
      return attempt(`${agent}/outbox`, async () => {
        const target = splitTarget(copyTo)
        const outbox = openPart(from, 'outbox', `${agent}/outbox`)
        try {
          const wanted = { patterns: patterns.value, limits, pace, hardLinks: 'inside' as const }
          const { files, leftOut, unmatched } = await selectFiles(outbox, wanted)
          if (unmatched.length > 0) throw new ProblemError(nothingFor(agent, unmatched, leftOut))
          const check = validated === undefined ? undefined : checkValidated(agent, validated)
          const real = () => `${realpathSync(from)}/outbox`
          const inputs = await copier.takeFiles(outbox, files, real, target, check)
          return { inputs, leftOut }
        } finally {
          outbox.close()
        }
      })
    },
    prefer: () => copier.prefer(),
    seal: () => attempt('inbox', () => copier.seal()),
    discard: () => copier.discard(),
  }

  async function takeFolder(
    folder: Directory,
    real: string,
    target: string[],
    hardLinks: 'inside' | 'any',
    withheld?: WithheldSeen,
  ): Promise<AddedInputs> {
    try {
      const { files, leftOut } = await selectFiles(folder, { limits, pace, hardLinks, withheld })
      return { inputs: await copier.takeFiles(folder, files, () => real, target), leftOut }
    } finally {
      folder.close()
    }
  }
}

function openWithin(within: string, path: string): Directory {
  const root = openDirectory(within, { shown: '' })
  try {
    const opened = openFolders(root, relative(within, path).split(sep))
    if (!opened.ok) throw new ProblemError(opened.error)
    return opened.value
  } finally {
    root.close()
  }
}

/** Another agent, or a process that was left running, can write to an outbox after its validation. */
function checkValidated(agent: string, validated: NonNullable<OutputsWanted['validated']>) {
  const known = new Map(validated.map(({ path, sha256 }) => [path, sha256]))
  return (path: string, sha256: string) => {
    if (known.get(path) === sha256) return
    const shown = `${agent}/outbox/${showName(path)}`
    refuse(
      'invalid',
      shown,
      known.has(path) ? 'was changed after it was validated' : `was added after ${agent} was validated`,
    )
  }
}

/** `inbox/data/` and `data` are the same target. */
function splitTarget(path: string): string[] {
  const split = splitPath(path)
  if (!split.ok) throw new ProblemError(problem('bad_path', showName(path), split.error))
  return split.value[0] === 'inbox' ? split.value.slice(1) : split.value
}

/** A target that ends in a slash is a folder, and the file keeps its name. */
function targetOf(to: string, name: string): string[] {
  const segments = splitTarget(to)
  return to.endsWith('/') || segments.length === 0 ? [...segments, name] : segments
}

function nothingFor(
  agent: string,
  unmatched: readonly string[],
  leftOut: readonly WorkspaceProblem[],
): WorkspaceProblem {
  const shown = unmatched.map(showName).join(', ')
  const why = leftOut.slice(0, 3).map(({ message }) => `; ${message}`)
  return problem('missing', `${agent}/outbox`, `has nothing that matches ${shown}${why.join('')}`)
}

interface InboxText {
  readonly instructions: string
  /** The other files that are text, by their paths from the workspace. */
  readonly files: readonly { readonly path: string; readonly content: string }[]
}

/** Larger files are not meant to be read as text. */
const FILE_BYTES = 256 * 1024
const MOST_FILES = 200

/** The inbox as text, for models that cannot open files. */
export function readInbox(workspace: string): Promise<WorkspaceResult<InboxText>> {
  return attempt('inbox', async () => {
    const inbox = openPart(workspace, 'inbox')
    try {
      const { files } = await selectFiles(inbox, {
        limits: DEFAULT_LIMITS,
        pace: startPace(),
        hardLinks: 'inside',
      })
      const texts: { path: string; content: string }[] = []
      for (const { path, segments } of files.slice(0, MOST_FILES)) {
        const above = segments.slice(0, -1)
        const opened = above.length === 0 ? undefined : openFolders(inbox, above)
        if (opened?.ok === false) continue
        try {
          const read = readSmall(opened?.value ?? inbox, segments.at(-1)!, FILE_BYTES)
          if (read.ok && !read.value.includes(0))
            texts.push({ path: `inbox/${path}`, content: read.value.toString() })
        } finally {
          opened?.value.close()
        }
      }
      const own = 'inbox/instructions.md'
      const instructions = texts.find(({ path }) => path === own)?.content ?? ''
      return { instructions, files: texts.filter(({ path }) => path !== own) }
    } finally {
      inbox.close()
    }
  })
}

/** Reads the protocol's files in an inbox. Null: the file does not exist. */
export function readInboxTexts(
  name: string,
  workspace: string,
): Promise<WorkspaceResult<{ instructions: string | null; dependencies: string | null }>> {
  return attempt(`${name}/inbox`, () => {
    const inbox = openPart(workspace, 'inbox', `${name}/inbox`)
    try {
      const textOf = (file: string) => {
        const read = readSmall(inbox, file, TEXT_BYTES)
        if (read.ok) return read.value.toString()
        if (read.error.code === 'missing') return null
        throw new ProblemError(read.error)
      }
      return { instructions: textOf('instructions.md'), dependencies: textOf('dependencies.json') }
    } finally {
      inbox.close()
    }
  })
}
