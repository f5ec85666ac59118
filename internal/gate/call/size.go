package call

import "reflect"

// Size returns how many bytes the texts and lists in all fields of v take up. It does
// not count what an interface holds; nothing from a client is in one.
func Size(v any) int { return size(reflect.ValueOf(v)) }

func size(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		n = v.Len()
	case reflect.Struct:
		for _, field := range v.Fields() {
			n += size(field)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			n = size(v.Elem())
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		for i := range v.Len() {
			n += size(v.Index(i))
		}
	}
	return n
}
