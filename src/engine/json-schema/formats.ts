import { z } from 'zod'

const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  email: fits(z.email()),
  uuid: fits(z.guid()),
  date: fits(z.iso.date()),
  'date-time': fits(z.iso.datetime({ offset: true })),
  time: (text) => fits(z.iso.datetime({ offset: true }))(`2000-01-01T${text}`),
  duration: fits(z.iso.duration()),
  uri: (text) => URL.canParse(text),
  url: (text) => URL.canParse(text),
  hostname: fits(z.hostname()),
  ipv4: fits(z.ipv4()),
  ipv6: fits(z.ipv6()),
}

function fits(format: z.ZodType): (text: string) => boolean {
  return (text) => format.safeParse(text).success
}

/** Undefined for a format that nobody can tell of. */
export function isFormatted(name: string, text: string): boolean | undefined {
  return Object.hasOwn(FORMATS, name) ? FORMATS[name]!(text) : undefined
}
