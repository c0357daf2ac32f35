import { DEFAULT_LIMITS } from './limits.ts'
import { attempt, type Outcome } from './problem.ts'
import { openFolders, openPart } from './safe-fs/directory.ts'
import { startPace } from './safe-fs/pace.ts'
import { selectFiles } from './safe-fs/selection.ts'
import { readSmall } from './safe-fs/small-file.ts'

export interface InboxText {
  readonly instructions: string
  /** The other files that are text, by their paths from the workspace. */
  readonly files: readonly { readonly path: string; readonly content: string }[]
}

/** Larger files are not meant to be read as text. */
const FILE_BYTES = 256 * 1024
const MOST_FILES = 200

/** The inbox as text, for someone who cannot open files. */
export function readInbox(workspace: string): Promise<Outcome<InboxText>> {
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
