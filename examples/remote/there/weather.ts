import { defineAgent, json, textOf } from 'rivulet';
import { concatMap, from, map, of, timer } from 'rxjs';

const hours = [9, 12, 15, 18];

/** Milliseconds between two hours. */
const pace = (): number => Number(process.env.WEATHER_PACE ?? 20);

/** The agent of the first server: a forecast, hour by hour. */
export default defineAgent(
  {
    name: 'weather',
    description: 'Tells the weather of a place.',
    metadata: { examples: ['Oslo'] },
  },
  (input) => {
    const place = textOf(input);
    const degrees = (hour: number): number => ((place.length * 7 + hour) % 20) + 5;
    return from([...hours, undefined]).pipe(
      concatMap((hour, index) => timer(index === 0 ? 0 : pace()).pipe(map(() => hour))),
      concatMap((hour) =>
        hour === undefined
          ? of(
              json(
                hours.map((each) => ({ hour: each, degrees: degrees(each) })),
                'forecast.json',
              ),
            )
          : of(`${hour}:00 ${degrees(hour)} °C. `),
      ),
    );
  },
);
