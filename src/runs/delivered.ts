import { DEFAULT_LIMITS } from '../workspaces/limits.ts'
import { collectOutbox } from '../workspaces/outbox.ts'
import { openPart } from '../workspaces/safe-fs/directory.ts'
import { replaceFile } from '../workspaces/safe-fs/write-file.ts'

/** One that speaks by commands may have no hands for files: what it reports is its summary, and its result where it has no other. */
export async function deliverReport(workspace: string, report: string): Promise<void> {
  const collected = await collectOutbox(workspace, { limits: DEFAULT_LIMITS })
  if (!collected.ok) return
  const outbox = openPart(workspace, 'outbox')
  try {
    const text = `${report.trim()}\n`
    if (collected.value.summary === undefined) replaceFile(outbox, 'summary.md', text, 0o644)
    if (collected.value.deliverables.length === 0) replaceFile(outbox, 'result.md', text, 0o644)
  } finally {
    outbox.close()
  }
}
