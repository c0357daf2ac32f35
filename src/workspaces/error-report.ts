import { tidy } from './instructions.ts'

export const ERROR_REPORT = 'error_report.md'

/** The content of error_report.md (S4.11). A missing part is empty. */
export interface ErrorReport {
  readonly type: string
  readonly description: string
  readonly attemptedRecovery: string
  readonly suggestedResolution: string
  readonly partialWork: string
}

const PARTS = {
  'error type': 'type',
  description: 'description',
  'attempted recovery': 'attemptedRecovery',
  'suggested resolution': 'suggestedResolution',
  'partial work': 'partialWork',
} as const satisfies Record<string, keyof ErrorReport>

/** An agent in trouble may not keep to the form: what is under no known heading is taken as the description. */
export function parseErrorReport(content: string): ErrorReport {
  const parts: Record<keyof ErrorReport, string[]> = {
    type: [],
    description: [],
    attemptedRecovery: [],
    suggestedResolution: [],
    partialWork: [],
  }
  let current: keyof ErrorReport = 'description'
  for (const line of tidy(content).split('\n')) {
    const heading = /^#{1,6}[ \t]+(.*?)[ \t:]*$/.exec(line)?.[1]?.toLowerCase()
    const part = Object.entries(PARTS).find(([name]) => name === heading)?.[1]
    if (part !== undefined) current = part
    else if (heading !== 'error report') parts[current].push(line)
  }
  const textOf = (part: keyof ErrorReport) => tidy(parts[part].join('\n'))
  return {
    type: textOf('type'),
    description: textOf('description'),
    attemptedRecovery: textOf('attemptedRecovery'),
    suggestedResolution: textOf('suggestedResolution'),
    partialWork: textOf('partialWork'),
  }
}
