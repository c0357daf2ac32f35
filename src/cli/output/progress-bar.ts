const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** `████▌░░░░░ 9/20`. What is over the end, or not a number, does not break it. */
export function bar(done: number, total: number, width = 10): string {
  const share = total > 0 ? Math.min(1, Math.max(0, done / total)) : 0
  const eighths = Math.round(share * width * 8)
  const full = Math.floor(eighths / 8)
  const part = EIGHTHS[eighths % 8]!
  const empty = width - full - (part === '' ? 0 : 1)
  return `${'█'.repeat(full)}${part}${'░'.repeat(empty)} ${round(done)}/${round(total)}`
}

const round = (number: number) => String(Math.round(number * 10) / 10)
