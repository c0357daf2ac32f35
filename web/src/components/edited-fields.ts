import { textOf } from './exact-text.ts'

interface Asked {
  readonly action?: { readonly fields: Readonly<Record<string, unknown>> } | undefined
}

/** The fields of an action as texts that a person may change. */
export function editable({ action }: Asked): Record<string, string> {
  return Object.fromEntries(
    Object.entries(action?.fields ?? {}).map(([name, value]) => [name, textOf(value)]),
  )
}

/** Changed fields that are no text and do not read as JSON. */
export function unreadableFields({ action }: Asked, edited: Record<string, string>): string[] {
  return Object.entries(edited)
    .filter(([name, text]) => {
      const before = action?.fields[name]
      return typeof before !== 'string' && text !== textOf(before) && !isJson(text)
    })
    .map(([name]) => name)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Only what is otherwise; what was no text is read as JSON again. */
export function changesOf({ action }: Asked, edited: Record<string, string>): Record<string, unknown> {
  const changes: Record<string, unknown> = {}
  for (const [name, text] of Object.entries(edited)) {
    const before = action?.fields[name]
    if (text === textOf(before)) continue
    changes[name] = typeof before === 'string' ? text : JSON.parse(text)
  }
  return changes
}
