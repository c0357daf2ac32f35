/** inbox/ as text: for models that cannot open files, and for plans made from a folder. */
import { DEFAULT_LIMITS, TEXT_BYTES } from './limits.ts'
import { attempt, ProblemError, type WorkspaceResult } from './problem.ts'
import { openFolders, openPart } from './safe-fs/directory.ts'
import { readSmall } from './safe-fs/files.ts'
import { selectFiles } from './safe-fs/select-files.ts'

interface InboxText {
  readonly instructions: string
  /** The other files that are text, by their paths from the workspace. */
  readonly files: readonly { readonly path: string; readonly content: string }[]
}

/** Larger files are not meant to be read as text. */
const FILE_BYTES = 256 * 1024
const MAX_FILES = 200

/** The inbox as text, for models that cannot open files. */
export function readInbox(workspace: string): Promise<WorkspaceResult<InboxText>> {
  return attempt('inbox', async () => {
    using inbox = openPart(workspace, 'inbox')
    const { files } = await selectFiles(inbox, { limits: DEFAULT_LIMITS, hardLinks: 'inside' })
    const texts: { path: string; content: string }[] = []
    for (const { path, segments } of files.slice(0, MAX_FILES)) {
      const folder = openFolders(inbox, segments.slice(0, -1))
      if (!folder.ok) continue
      try {
        const read = readSmall(folder.value, segments.at(-1)!, FILE_BYTES)
        if (read.ok && !read.value.includes(0)) {
          texts.push({ path: `inbox/${path}`, content: read.value.toString() })
        }
      } finally {
        folder.value.close()
      }
    }
    const own = 'inbox/instructions.md'
    const instructions = texts.find(({ path }) => path === own)?.content ?? ''
    return { instructions, files: texts.filter(({ path }) => path !== own) }
  })
}

/** Reads the protocol's files in an inbox. Null: the file does not exist. */
export function readInboxTexts(
  name: string,
  workspace: string,
): Promise<WorkspaceResult<{ instructions: string | null; dependencies: string | null }>> {
  return attempt(`${name}/inbox`, () => {
    using inbox = openPart(workspace, 'inbox', `${name}/inbox`)
    const textOf = (file: string) => {
      const read = readSmall(inbox, file, TEXT_BYTES)
      if (read.ok) return read.value.toString()
      if (read.error.code === 'missing') return null
      throw new ProblemError(read.error)
    }
    return { instructions: textOf('instructions.md'), dependencies: textOf('dependencies.json') }
  })
}
