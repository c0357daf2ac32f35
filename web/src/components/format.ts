/** Made once: making one takes longer than using it a hundred times. */
const TIME = new Intl.DateTimeFormat([], {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
const DAY = new Intl.DateTimeFormat([], { month: 'short', day: 'numeric' })

/** Times and amounts in the fewest words that are still exact enough. */
export function clock(at: string): string {
  const date = new Date(at)
  const time = TIME.format(date)
  return date.toDateString() === new Date().toDateString() ? time : `${DAY.format(date)} ${time.slice(0, 5)}`
}

export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  return seconds < 129_600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`
}

export function since(at: string, now: number): string {
  return span(Math.max(0, now - Date.parse(at)))
}

export function money(amount: number): string {
  return amount < 0.995 ? amount.toFixed(3) : amount.toFixed(2)
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}
