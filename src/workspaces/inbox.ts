/**
 * inbox/ (S4.6): filling it with instructions, copies of inputs and outputs of other agents, and comparing it with its
 * manifest after the run (C21). A new inbox is a draft beside the old one until it replaces it completely.
 */
import { hash } from 'node:crypto'
import { closeSync, fchmodSync, mkdirSync, realpathSync, renameSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { formatBytes } from '../base/bytes.ts'
import type { PlanInstructions } from '../runs/plan.ts'
import { DEFAULT_LIMITS, type FileLimits } from './limits.ts'
import { namesOf } from './outbox.ts'
import {
  attempt,
  named,
  ProblemError,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from './problem.ts'
import {
  type Directory,
  listNames,
  lookAt,
  mustOpen,
  type Opened,
  type OpenFile,
  openDirectory,
  openFile,
  openFolder,
  openFolders,
  openPart,
  openSeen,
  showName,
  splitPath,
} from './safe-fs/directory.ts'
import { createFile, makeFolders, readContent, temporaryName, writeNew } from './safe-fs/files.ts'
import { removeTree } from './safe-fs/remove-tree.ts'
import {
  findWithheld,
  openFound,
  parseOutputs,
  selectFiles,
  type Withheld,
  type WithheldFiles,
  walkTree,
} from './safe-fs/select-files.ts'
import { fillIn, formatInstructions } from './skill-and-instructions.ts'

/** An input as the agent finds it. */
interface InboxFile {
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

interface InputWanted {
  /** A file or folder that belongs to the user. */
  readonly path: string
  /** `inbox/data.csv`; with a slash at the end, a folder in which it keeps its name. */
  readonly to: string
  readonly description?: string
}

interface InboxWanted {
  readonly workspace: string
  /** The title of the instructions. */
  readonly task: string
  readonly instructions: PlanInstructions
  readonly limits?: FileLimits
  readonly inputs?: readonly InputWanted[]
  readonly dependencies?: readonly OutputsWanted[]
  /** Files that are never taken from the folders among the inputs. Called only if there are inputs. */
  readonly withheld?: () => readonly Withheld[]
  /**
   * A folder of corrected inputs, by their places in the inbox: they replace the original ones. Agents can write to the folders
   * below `within`, so links there are not followed.
   */
  readonly corrections?: { readonly path: string; readonly within: string }
  /** Requested deliverables, for the instructions. */
  readonly outputs?: readonly string[]
  /** The content of inbox/dependencies.json (S4.13). */
  readonly dependenciesFile?: string
  readonly signal?: AbortSignal
}

interface PreparedInbox {
  readonly manifest: InboxManifest
  /** Entries that were selected but cannot be taken, each with the reason. */
  readonly leftOut: readonly WorkspaceProblem[]
}

/** Fills the inbox for a run and replaces the previous one. After a crash, call it again. */
export function prepareInbox(wanted: InboxWanted): Promise<WorkspaceResult<PreparedInbox>> {
  const { inputs = [], dependencies = [], outputs = [], corrections, signal } = wanted
  const limits = wanted.limits ?? DEFAULT_LIMITS
  return attempt('inbox', async () => {
    const draft = await openDraft(wanted.workspace, limits, signal)
    const leftOut: WorkspaceProblem[] = []
    try {
      const instructions = fillIn(wanted.instructions, { inputs, dependencies, outputs })
      draft.write('instructions.md', formatInstructions(wanted.task, instructions))
      if (wanted.dependenciesFile !== undefined) draft.write('dependencies.json', wanted.dependenciesFile)
      if (corrections !== undefined) {
        const { path, within } = corrections
        const add = () => addFolder(openWithin(within, path), path, [], 'inside')
        leftOut.push(...(await named(showName(path), add)))
        draft.prefer()
      }
      for (const input of inputs) {
        leftOut.push(...(await named(showName(input.path), () => addInput(input))))
      }
      for (const dependency of dependencies) {
        leftOut.push(...(await named(`${dependency.agent}/outbox`, () => addOutputs(dependency))))
      }
      return { manifest: await draft.seal(), leftOut }
    } finally {
      await draft.discard()
    }

    async function addInput({ path, to }: InputWanted): Promise<readonly WorkspaceProblem[]> {
      // The user may name a link: its target is then the input.
      const real = realpathSync(path)
      const withheld = findWithheld(wanted.withheld?.() ?? [])
      withheld.refuseWithin(real, showName(path))
      using parent = openDirectory(dirname(real))
      const target = splitTarget(to)
      const folder = openFolder(parent, basename(real))
      if (folder.ok) return await addFolder(folder.value, real, target, 'any', withheld)
      if (folder.error.code !== 'not_a_folder') throw new ProblemError(folder.error)
      // A target that ends in a slash is a folder, and the file keeps its name.
      if (to.endsWith('/') || target.length === 0) target.push(basename(path))
      await draft.add(target, real, real, () => mustOpen(openFile(parent, basename(real))))
      return []
    }

    /** Closes the folder. */
    async function addFolder(
      folder: Directory,
      real: string,
      target: readonly string[],
      hardLinks: 'inside' | 'any',
      withheld?: WithheldFiles,
    ): Promise<readonly WorkspaceProblem[]> {
      try {
        const { files, leftOut } = await selectFiles(folder, { limits, signal, hardLinks, withheld })
        for (const file of files) {
          const to = [...target, ...file.segments]
          await draft.add(to, file.shown, join(real, file.path), () => openFound(folder, file))
        }
        return leftOut
      } finally {
        folder.close()
      }
    }

    async function addOutputs(dependency: OutputsWanted): Promise<readonly WorkspaceProblem[]> {
      const { workspace, agent, copyTo, validated } = dependency
      const patterns = parseOutputs(dependency.outputs)
      if (!patterns.ok) throw new ProblemError(patterns.error[0]!)
      const target = splitTarget(copyTo)
      using outbox = openPart(workspace, 'outbox', `${agent}/outbox`)
      const options = { patterns: patterns.value, limits, signal, hardLinks: 'inside' as const }
      const { files, leftOut, unmatched } = await selectFiles(outbox, options)
      if (unmatched.length > 0) {
        const patterns = unmatched.map(showName).join(', ')
        refuse('missing', `${agent}/outbox`, `has nothing that matches ${patterns}${namesOf(leftOut)}`)
      }
      const real = join(realpathSync.native(workspace), 'outbox')
      const known = validated && new Map(validated.map(({ path, sha256 }) => [path, sha256]))
      for (const file of files) {
        const to = [...target, ...file.segments]
        const copied = await draft.add(to, file.shown, join(real, file.path), () => openFound(outbox, file))
        // Another agent, or a process that was left running, can write to an outbox after its validation.
        if (known === undefined || copied === undefined || copied === known.get(file.path)) continue
        const isKnown = known.has(file.path)
        const why = isKnown ? 'was changed after it was validated' : `was added after ${agent} was validated`
        refuse('invalid', file.shown, why)
      }
      return leftOut
    }
  })
}

function openWithin(within: string, path: string): Directory {
  using root = openDirectory(within, { shown: '' })
  return mustOpen(openFolders(root, relative(within, path).split(sep)))
}

/** `inbox/data/` and `data` are the same target. */
function splitTarget(path: string): string[] {
  const split = splitPath(path)
  if (!split.ok) return refuse('bad_path', showName(path), split.error)
  return split.value[0] === 'inbox' ? split.value.slice(1) : split.value
}

const DRAFT = '.inbox.'
const MAX_LEFTOVERS = 1000
const REFERENCES = 'references.json'
/** Orchub writes these files for each attempt; neither a plan nor a fixer provides them. */
export const PROTOCOL_FILES: ReadonlySet<string> = new Set([
  'instructions.md',
  'dependencies.json',
  REFERENCES,
])

/** Opens an empty folder beside inbox/, fills it with copies and references, and puts it in inbox/'s place. */
async function openDraft(workspace: string, limits: FileLimits, signal: AbortSignal | undefined) {
  const root = openDirectory(workspace, { shown: '' })
  const draftName = temporaryName('inbox')
  const draft = await beginDraft(root, draftName)
  const inputs: InboxFile[] = []
  const taken = new Set([REFERENCES])
  const preferred = new Set<string>()
  let copiedBytes = 0
  let referencedBytes = 0
  let open = true

  /** Checks before anything is written that the place is free, not reserved by the protocol, and within the limit. */
  function claim(path: string): void {
    if (path === '') refuse('bad_path', 'inbox', 'cannot be the target of a file; name a path inside it')
    if (taken.has(path)) {
      refuse('exists', `inbox/${path}`, 'already exists: two inputs have the same target path')
    }
    if (inputs.length >= limits.files) {
      refuse('too_many_files', 'inbox', `would hold more than ${limits.files} files, which is the limit`)
    }
    taken.add(path)
  }

  /** Copies a file, or refers to it if it is large. Returns its hash, or undefined if a correction replaces it. */
  async function add(to: readonly string[], shown: string, real: string, openIt: () => OpenFile) {
    const path = to.join('/')
    if (preferred.has(path)) return undefined
    const file = openIt()
    try {
      claim(path)
      const size = Number(file.stat.size)
      if (size > limits.inlineBytes) {
        referencedBytes += size
        if (referencedBytes > limits.referencedBytes) tooLarge('references', shown, limits.referencedBytes)
        inputs.push({ path, ...(await readContent(file, shown, signal)), reference: real })
      } else {
        copiedBytes += size
        if (copiedBytes > limits.copiedBytes) tooLarge('copies', shown, limits.copiedBytes)
        inputs.push({ path, ...(await copy(file, shown, to)) })
      }
      return inputs.at(-1)!.sha256
    } finally {
      closeSync(file.fd)
    }
  }

  async function copy(file: OpenFile, shown: string, to: readonly string[]) {
    using folder = makeFolders(draft, to.slice(0, -1))
    const mode = (file.stat.mode & 0o111n) === 0n ? 0o444 : 0o555
    const out = createFile(folder, to.at(-1)!, mode)
    try {
      const content = await readContent(file, shown, signal, out)
      fchmodSync(out, mode)
      return content
    } finally {
      closeSync(out)
    }
  }

  function writeText(name: string, text: string): void {
    const data = Buffer.from(text)
    writeNew(draft, name, data, 0o444)
    inputs.push({ path: name, size: data.length, sha256: hash('sha256', data) })
  }

  return {
    add,
    /** Writes a file of the protocol itself: instructions.md, dependencies.json. */
    write(name: string, text: string): void {
      claim(name)
      writeText(name, text)
    },
    /** Makes the files added so far win over later ones for the same place. */
    prefer() {
      for (const { path } of inputs) preferred.add(path)
    },
    /** Makes the draft read-only and puts it in place. */
    async seal(): Promise<InboxManifest> {
      const references = inputs.filter(({ reference }) => reference !== undefined)
      if (references.length > 0) writeText(REFERENCES, formatReferences(references))
      makeReadOnly(draft, inputs)
      const before = temporaryName('inbox')
      if (lookAt(root, 'inbox') !== undefined) renameSync(root.at('inbox'), root.at(before))
      renameSync(root.at(draftName), root.at('inbox'))
      await removeTree(root, before)
      close()
      return manifestOf(inputs)
    },
    /** Cleans up even if the work was aborted. */
    async discard() {
      if (!open) return
      await removeTree(root, draftName)
      close()
    },
  }

  function close() {
    open = false
    draft.close()
    root.close()
  }
}

/** Removes drafts of processes that died first. */
async function beginDraft(root: Directory, name: string): Promise<Directory> {
  try {
    for (const left of listNames(root, MAX_LEFTOVERS).map(String)) {
      if (left.startsWith(DRAFT)) await removeTree(root, left)
    }
    mkdirSync(root.at(name), 0o755)
    return mustOpen(openFolder(root, name, 'inbox'))
  } catch (error) {
    root.close()
    throw error
  }
}

function tooLarge(what: string, shown: string, limit: number): never {
  refuse('too_large', shown, `would exceed the limit of ${formatBytes(limit)} for all ${what} together`)
}

/** C21. `path` is where the file is; `instead_of` where a copy would have been. */
function formatReferences(references: readonly InboxFile[]): string {
  const list = references.map(({ path, size, sha256, reference }) => ({
    path: reference,
    size,
    sha256,
    instead_of: `inbox/${path}`,
  }))
  return `${JSON.stringify({ references: list }, null, 2)}\n`
}

/** Closes all folders of copied files to writing. References have no folders. */
function makeReadOnly(draft: Directory, inputs: readonly InboxFile[]): void {
  const folders = new Set([''])
  for (const { path, reference } of inputs) {
    if (reference !== undefined) continue
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) folders.add(path.slice(0, at))
  }
  for (const path of folders) {
    const folder = mustOpen(openFolders(draft, path === '' ? [] : path.split('/')))
    fchmodSync(folder.fd, 0o555)
    folder.close()
  }
}

/** The hash skips references.json, which only says where files are; the referenced files themselves count. */
function manifestOf(inputs: readonly InboxFile[]): InboxManifest {
  const sorted = [...inputs].sort((one, other) => (one.path < other.path ? -1 : 1))
  const lines = sorted
    .filter(({ path }) => path !== REFERENCES)
    .map(({ path, size, sha256 }) => `${JSON.stringify([path, size, sha256])}\n`)
  return { inputs: sorted, hash: hash('sha256', lines.join('')) }
}

interface Difference {
  /** Below inbox/, or the whole path of a reference. */
  readonly path: string
  readonly change: 'added' | 'removed' | 'changed'
}

/** Compares the inbox with its manifest (C21): names and content, including references. */
export function checkInbox(
  workspace: string,
  manifest: InboxManifest,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<WorkspaceResult<readonly Difference[]>> {
  return attempt('inbox', async () => {
    const differences: Difference[] = []
    const copies = new Map(
      manifest.inputs.filter(({ reference }) => reference === undefined).map((input) => [input.path, input]),
    )
    using inbox = openPart(workspace, 'inbox')
    await walkTree(inbox, {
      limits: { ...DEFAULT_LIMITS, files: DEFAULT_LIMITS.files + manifest.inputs.length },
      signal,
      async file({ directory, name, path, shown, stat }) {
        const input = copies.get(path)
        copies.delete(path)
        if (input === undefined) differences.push({ path, change: 'added' })
        else if (!(await isSame(openSeen(directory, name, stat), shown, input, signal))) {
          differences.push({ path, change: 'changed' })
        }
      },
      trap(why, segments) {
        const path = segments?.join('/')
        const isCopy = path !== undefined && copies.delete(path)
        differences.push({ path: path ?? why.path, change: isCopy ? 'changed' : 'added' })
      },
    })
    for (const path of copies.keys()) differences.push({ path, change: 'removed' })
    for (const { reference, ...input } of manifest.inputs) {
      if (reference === undefined) continue
      using folder = openDirectory(dirname(reference))
      if (await isSame(openFile(folder, basename(reference)), reference, input, signal)) continue
      differences.push({ path: reference, change: 'changed' })
    }
    return differences
  })
}

async function isSame(
  opened: Opened<OpenFile>,
  shown: string,
  input: InboxFile,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (!opened.ok) return false
  try {
    if (Number(opened.value.stat.size) !== input.size) return false
    return (await readContent(opened.value, shown, signal)).sha256 === input.sha256
  } catch (error) {
    if (error instanceof ProblemError && error.problem.code === 'changed') return false
    throw error
  } finally {
    closeSync(opened.value.fd)
  }
}
