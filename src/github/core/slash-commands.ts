/** `/agent …` commands in comments, and who may use them. */

export const SLASH_COMMANDS = [
  'help',
  'summarize',
  'find-gfi',
  'draft-docs',
  'repo-stats',
  'approve',
  'reject',
] as const
export type SlashName = (typeof SLASH_COMMANDS)[number]

export interface SlashCommand {
  readonly name: SlashName
  readonly words: string
}

/** `name` is undefined for an unknown command. */
type ParsedSlash = SlashCommand | { readonly name: undefined; readonly said: string }

const LINE = /^\/agent(?:[ \t]+(\S+)(?:[ \t]+(.*))?)?$/i
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/
/** Further commands in one comment are ignored. */
const MAX_COMMANDS = 5

/** A command starts at the beginning of a line. Quotes, indented lines and code blocks don't count. */
export function readSlashCommands(body: string): ParsedSlash[] {
  const found: ParsedSlash[] = []
  let fence: string | undefined
  for (const line of body.split(/\r\n|\r|\n/)) {
    const mark = FENCE.exec(line)
    if (fence !== undefined) {
      if (mark !== null && mark[1]!.startsWith(fence) && mark[2]!.trim() === '') fence = undefined
      continue
    }
    if (mark) {
      fence = mark[1]!
      continue
    }
    const said = LINE.exec(line.trimEnd())
    if (said !== null && found.length < MAX_COMMANDS) found.push(toCommand(said[1] ?? 'help', said[2] ?? ''))
  }
  return found
}

function toCommand(said: string, words: string): ParsedSlash {
  const name = SLASH_COMMANDS.find((one) => one === said.toLowerCase())
  return name === undefined ? { name, said: said.slice(0, 40) } : { name, words: words.trim() }
}

/** In ascending order. Unknown associations rank below all of them (C19). */
const RANKS: readonly string[] = ['CONTRIBUTOR', 'COLLABORATOR', 'MEMBER', 'OWNER']

/** The least association. `people`: only people in orc.yaml, whatever their association. */
const PERMISSIONS: Record<SlashName, 'anyone' | 'people' | 'CONTRIBUTOR' | 'COLLABORATOR'> = {
  help: 'anyone',
  'find-gfi': 'anyone',
  summarize: 'CONTRIBUTOR',
  'repo-stats': 'CONTRIBUTOR',
  'draft-docs': 'COLLABORATOR',
  approve: 'people',
  reject: 'people',
}

interface SlashAuthor {
  readonly association: string
  /** The person of orc.yaml with this login. */
  readonly person: string | undefined
}

export function maySay(name: SlashName, { association, person }: SlashAuthor): boolean {
  const needed = PERMISSIONS[name]
  if (needed === 'anyone') return true
  if (needed === 'people') return person !== undefined
  return person !== undefined || RANKS.indexOf(association) >= RANKS.indexOf(needed)
}

/** `req_7` and the comment after it. */
export function readVerdict(words: string): { request: string; comment: string } | undefined {
  const match = /^(req_[1-9]\d{0,15})(?:\s+([\s\S]*))?$/i.exec(words)
  return match === null ? undefined : { request: match[1]!.toLowerCase(), comment: match[2]?.trim() ?? '' }
}

export function helpText(): string {
  return [
    '| command | |',
    '|---|---|',
    '| `/agent summarize` | a summary of this thread |',
    '| `/agent find-gfi` | issues for newcomers |',
    '| `/agent draft-docs` | a draft of documentation for this |',
    '| `/agent repo-stats` | how this repository is doing |',
    '| `/agent approve ID`, `/agent reject ID` | decide on a proposal, for its approvers |',
  ].join('\n')
}
